"""Real, fixed defects of the NPU Triton backend, one module each: what was wrong, and the edit that brings it back."""

from __future__ import annotations

from backend_fixes.alternate_span import FIX as ALTERNATE_SPAN
from backend_fixes.amax_nan import FIX as AMAX_NAN
from backend_fixes.amin_helper import FIX as AMIN_HELPER
from backend_fixes.compare_of_difference import FIX as COMPARE_OF_DIFFERENCE
from backend_fixes.downcast_inout import FIX as DOWNCAST_INOUT
from backend_fixes.dualview_symbol import FIX as DUALVIEW_SYMBOL
from backend_fixes.exact_grid import FIX as EXACT_GRID
from backend_fixes.keepdim_rank import FIX as KEEPDIM_RANK
from backend_fixes.masked_block_mask import FIX as MASKED_BLOCK_MASK
from backend_fixes.masked_clamp_zero import FIX as MASKED_CLAMP_ZERO
from backend_fixes.maximum_nan import FIX as MAXIMUM_NAN
from backend_fixes.permuted_reduction import FIX as PERMUTED_REDUCTION
from backend_fixes.persistent_block import FIX as PERSISTENT_BLOCK
from backend_fixes.power_float64 import FIX as POWER_FLOAT64
from backend_fixes.promoted_alias import FIX as PROMOTED_ALIAS
from backend_fixes.round_float64 import FIX as ROUND_FLOAT64
from backend_fixes.rsplit_epilogue import FIX as RSPLIT_EPILOGUE
from backend_fixes.rsplit_output_binding import FIX as RSPLIT_OUTPUT_BINDING
from backend_fixes.rsplit_sum_denominator import FIX as RSPLIT_SUM_DENOMINATOR
from backend_fixes.strict_fallback import FIX as STRICT_FALLBACK
from backend_fixes.tile_reductions_numel import FIX as TILE_REDUCTIONS_NUMEL
from backend_fixes.tile_reductions_slot import FIX as TILE_REDUCTIONS_SLOT
from fuzzer.fixes import BackendFix

FIXES: tuple[BackendFix, ...] = (
    RSPLIT_OUTPUT_BINDING,
    DUALVIEW_SYMBOL,
    DOWNCAST_INOUT,
    KEEPDIM_RANK,
    RSPLIT_EPILOGUE,
    RSPLIT_SUM_DENOMINATOR,
    TILE_REDUCTIONS_SLOT,
    TILE_REDUCTIONS_NUMEL,
    MAXIMUM_NAN,
    AMIN_HELPER,
    ROUND_FLOAT64,
    STRICT_FALLBACK,
    EXACT_GRID,
    COMPARE_OF_DIFFERENCE,
    PERSISTENT_BLOCK,
    PERMUTED_REDUCTION,
    ALTERNATE_SPAN,
    MASKED_BLOCK_MASK,
    POWER_FLOAT64,
    AMAX_NAN,
    MASKED_CLAMP_ZERO,
    PROMOTED_ALIAS,
)
