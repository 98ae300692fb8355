"""Set before any test module imports torch: an installed torch_npu must not load itself into the tests of CPU code."""

import os

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
