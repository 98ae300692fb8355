"""Real, fixed defects of the NPU Triton backend, one module each: what was wrong, and the edit that brings it back."""

from __future__ import annotations

from backend_fixes.downcast_inout import FIX as DOWNCAST_INOUT
from backend_fixes.dualview_symbol import FIX as DUALVIEW_SYMBOL
from backend_fixes.rsplit_output_binding import FIX as RSPLIT_OUTPUT_BINDING
from fuzzer.fixes import BackendFix

FIXES: tuple[BackendFix, ...] = (
    RSPLIT_OUTPUT_BINDING,
    DUALVIEW_SYMBOL,
    DOWNCAST_INOUT,
)
