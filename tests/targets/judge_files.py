"""`python -m tests.targets.judge_files TARGET FILE...`: runs program files in one process, prints verdicts as JSON.

In a process of its own, because a target changes torch's settings for good.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fuzzer.program import Case, Mode
from fuzzer.targets import platform
from fuzzer.verdict import Stage

TRAINING = "# training"
"""Comment line of a program file that has to be differentiated."""


def main(target: str, files: list[str]) -> dict[str, Any]:
    run = platform(target).prepare()
    from fuzzer.oracles import judge, settled

    verdicts: dict[str, Any] = {}
    for file in files:
        source = Path(file).read_text()
        crumbs: list[str] = []

        def leave(stage: Stage, step: str, crumbs: list[str] = crumbs) -> None:
            crumbs.append(f"{stage}: {step}")

        seen = run(Case(source=source, mode=Mode(training=TRAINING in source, calls=2)), leave, settled)
        verdict = judge(seen)
        verdicts[Path(file).stem] = {
            "outcome": verdict.outcome,
            "kind": verdict.signature.kind if verdict.signature else "",
            "origin": verdict.signature.origin if verdict.signature else "",
            "stage": verdict.signature.stage if verdict.signature else "",
            "evidence": verdict.evidence,
            "crumbs": crumbs,
            "seconds": dict(seen.reference.seconds),
            "gradients": [leaf.path for leaf in seen.compiled[0].gradients],
            "kernels": [name for name, _ in seen.compiled[0].kernels],
            "exact": seen.exact,
        }
    return {"verdicts": verdicts, "torch_npu": "torch_npu" in sys.modules}


if __name__ == "__main__":
    answers = sys.stdout
    sys.stdout = sys.stderr  # what libraries print must not mix with the answer
    answers.write(json.dumps(main(sys.argv[1], sys.argv[2:])))
