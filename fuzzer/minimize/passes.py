"""The passes in the order they are tried: what takes most away for one evaluation comes first."""

from __future__ import annotations

from dataclasses import dataclass

from fuzzer.minimize.details import (
    plain_details,
    plain_dtypes,
    plain_layouts,
    plain_mode,
    plain_ops,
    plain_params,
    plain_seeds,
    plain_values,
)
from fuzzer.minimize.draft import settle
from fuzzer.minimize.shapes import drop_dims, shrink_dims, shrink_highs, shrink_sizes
from fuzzer.minimize.size import size
from fuzzer.minimize.structure import (
    Edit,
    cut_cones,
    disconnect,
    drop_chunks,
    drop_dead,
    drop_one_output,
    keep_one_output,
    merge_inputs,
    move_outputs,
    reuse_operands,
)
from fuzzer.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One way of making programs smaller."""

    name: str
    edit: Edit

    def __call__(self, program: Program) -> tuple[Program, ...]:
        """Every candidate, each once, well-formed and strictly smaller than `program`."""
        bound = size(program)
        candidates: dict[Program, None] = {}
        for edited in self.edit(program):
            for candidate in settle(edited):
                if size(candidate) < bound:
                    candidates[candidate] = None
        return tuple(candidates)


PASSES = (
    Pass(name="drop-dead", edit=drop_dead),
    Pass(name="keep-one-output", edit=keep_one_output),
    Pass(name="drop-16-statements", edit=drop_chunks(16)),
    Pass(name="drop-8-statements", edit=drop_chunks(8)),
    Pass(name="drop-4-statements", edit=drop_chunks(4)),
    Pass(name="cut-cones", edit=cut_cones),
    Pass(name="drop-one-output", edit=drop_one_output),
    Pass(name="drop-2-statements", edit=drop_chunks(2)),
    Pass(name="drop-1-statement", edit=drop_chunks(1)),
    Pass(name="move-outputs", edit=move_outputs),
    Pass(name="disconnect", edit=disconnect),
    Pass(name="merge-inputs", edit=merge_inputs),
    Pass(name="reuse-operands", edit=reuse_operands),
    Pass(name="plain-details", edit=plain_details),
    Pass(name="drop-dims", edit=drop_dims),
    Pass(name="shrink-sizes", edit=shrink_sizes),
    Pass(name="shrink-dims", edit=shrink_dims),
    Pass(name="shrink-highs", edit=shrink_highs),
    Pass(name="plain-mode", edit=plain_mode),
    Pass(name="plain-dtypes", edit=plain_dtypes),
    Pass(name="plain-layouts", edit=plain_layouts),
    Pass(name="plain-ops", edit=plain_ops),
    Pass(name="plain-params", edit=plain_params),
    Pass(name="plain-values", edit=plain_values),
    Pass(name="plain-seeds", edit=plain_seeds),
)
