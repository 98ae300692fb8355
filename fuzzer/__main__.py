"""`python -m fuzzer` is `fuzz`."""

import sys

from fuzzer.cli import main

sys.exit(main())
