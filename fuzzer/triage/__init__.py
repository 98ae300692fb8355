"""What a finding is called and which findings are one defect."""

from fuzzer.triage.bucket import Bucket, bucket, same
from fuzzer.triage.title import title, unparsed

__all__ = ["Bucket", "bucket", "same", "title", "unparsed"]
