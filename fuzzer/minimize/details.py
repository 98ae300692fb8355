"""Passes that leave the graph and its shapes alone: modes, dtypes, layouts, values, parameters, seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fuzzer.minimize.draft import Draft, draft, fitting_layout
from fuzzer.minimize.refit import infer
from fuzzer.minimize.size import REGIMES, weight
from fuzzer.ops import BY_NAME, Family
from fuzzer.program import DType, InputSpec, Layout, LayoutKind, Literal, Mode, Node, Program, Regime, TensorType, Type

_PLAIN_REGIMES = (Regime.NORMAL, Regime.IOTA, Regime.EXACT)
_PLAIN_INDEX_REGIMES = (Regime.IOTA, Regime.INDEX)


def plain_details(program: Program) -> Iterator[Draft]:
    """Everything but values as plain as can be at once: mode, layouts, dtypes, seeds; then all but the mode."""
    plain = _plainly_typed(program)
    inputs = tuple(replace(spec, layout=Layout(), seed=position) for position, spec in enumerate(plain.inputs))
    yield replace(plain, inputs=inputs, mode=Mode())
    yield replace(plain, inputs=inputs)


def plain_mode(program: Program) -> Iterator[Draft]:
    """Forward only, static shapes, one call, no options of its own: all at once, then one by one."""
    mode = program.mode
    yield draft(program, mode=Mode())
    yield draft(program, mode=replace(mode, training=False))
    yield draft(program, mode=replace(mode, dynamic=False))
    for calls in range(1, mode.calls):
        yield draft(program, mode=replace(mode, calls=calls))
    for place in range(len(mode.config)):
        yield draft(program, mode=replace(mode, config=mode.config[:place] + mode.config[place + 1 :]))


def plain_layouts(program: Program) -> Iterator[Draft]:
    """Inputs contiguous: all, then one by one; where one cannot be, without offset and with step 2."""
    yield draft(program, inputs=tuple(replace(spec, layout=Layout()) for spec in program.inputs))
    for position, spec in enumerate(program.inputs):
        yield _one_input(program, position, replace(spec, layout=Layout()))
        if spec.layout.kind is LayoutKind.STRIDED:
            plain = fitting_layout(replace(spec.layout, offset=0), spec.type.shape)
            yield _one_input(program, position, replace(spec, layout=plain))
            yield _one_input(program, position, replace(spec, layout=replace(spec.layout, step=2)))
            plain = fitting_layout(replace(spec.layout, step=1), spec.type.shape)
            yield _one_input(program, position, replace(spec, layout=plain))


def plain_dtypes(program: Program) -> Iterator[Draft]:
    """float32 and int64: wherever another dtype is written, casts left out; then one input after the other."""
    plain = _plainly_typed(program)
    yield plain
    for position, spec in enumerate(plain.inputs):
        yield _one_input(program, position, spec)


def plain_values(program: Program) -> Iterator[Draft]:
    """Plainer values: all inputs at once, then one by one. Distinct values and lengths are kept what they are."""
    for regime in _PLAIN_REGIMES:
        yield draft(program, inputs=tuple(replace(spec, regime=_plainer(spec, regime)) for spec in program.inputs))
    for position, spec in enumerate(program.inputs):
        for regime in _plainer_regimes(spec):
            yield _one_input(program, position, replace(spec, regime=regime))


def plain_params(program: Program) -> Iterator[Draft]:
    """Plainer parameters: False, fewer dims, 0, 1, float32.

    A number to calculate with becomes 2 at the least: times 1 or plus 0 would hide what the statement does.
    """
    for place in range(len(program.nodes) - 1, -1, -1):
        node = program.nodes[place]
        for slot, (name, value) in enumerate(node.params):
            for plainer in _plainer_literals(value, BY_NAME[node.op].family):
                params = (*node.params[:slot], (name, plainer), *node.params[slot + 1 :])
                nodes = (*program.nodes[:place], replace(node, params=params), *program.nodes[place + 1 :])
                yield draft(program, nodes=nodes)


def plain_ops(program: Program) -> Iterator[Draft]:
    """A plainer relative of an operator: `sum` for `sum_keepdim`, `relu` for the in-place `relu_`."""
    for place in range(len(program.nodes) - 1, -1, -1):
        node = program.nodes[place]
        for op in _plainer_ops(node.op):
            yield draft(program, nodes=(*program.nodes[:place], replace(node, op=op), *program.nodes[place + 1 :]))


def plain_seeds(program: Program) -> Iterator[Draft]:
    """Every input's seed is its position: all at once, then one by one."""
    seeded = tuple(replace(spec, seed=position) for position, spec in enumerate(program.inputs))
    yield draft(program, inputs=seeded)
    for position, spec in enumerate(seeded):
        yield _one_input(program, position, spec)


def _plainer_ops(op: str) -> Iterator[str]:
    """Operators named like `op` without its last words, that take the same arguments."""
    taken = [slot.name for slot in BY_NAME[op].slots]
    words = op.rstrip("_").split("_")
    stems = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
    for stem in stems:
        if stem != op and stem in BY_NAME and [slot.name for slot in BY_NAME[stem].slots] == taken:
            yield stem


def _plainly_typed(program: Program) -> Draft:
    """float32 and int64 throughout, without the casts that then do nothing."""
    inputs = tuple(
        replace(spec, type=replace(spec.type, dtype=_plain_dtype(spec.type.dtype))) for spec in program.inputs
    )
    types: dict[str, Type] = {spec.name: spec.type for spec in inputs}
    names: dict[str, str] = {}
    nodes: list[Node] = []
    for old in program.nodes:
        args = tuple(names.get(name, name) for name in old.args)
        node = replace(old, args=args, params=tuple((name, _plain_name(value)) for name, value in old.params))
        kind = infer(node.op, tuple(types[name] for name in args), node.params)
        first = types[args[0]]
        if kind is None and isinstance(first, TensorType) and str(first.dtype) in [value for _, value in node.params]:
            names[node.name] = args[0]
        else:
            types[node.name] = node.type if kind is None else kind
            nodes.append(node)
    outputs = tuple(dict.fromkeys(names.get(name, name) for name in program.outputs))
    return draft(program, inputs=inputs, nodes=tuple(nodes), outputs=outputs)


def _plainer_literals(value: Literal, family: Family) -> Iterator[Literal]:
    """Literals of the same kind that are plainer than `value`."""
    calculates = family in (Family.POINTWISE, Family.GRAPH_BREAKS)
    options: Sequence[Literal]
    match value:
        case None:
            options = ()
        case bool():
            options = (False,)
        case int():
            options = (2,) if calculates else (0, 1, -1, 2, value // 2)
        case float():
            options = (2.0,) if calculates else (0.0, 1.0, 2.0)
        case str():
            options = (_plain_name(value),)
        case tuple():
            options = value if len(value) == 1 else tuple(value[:i] + value[i + 1 :] for i in range(len(value)))
    bound = weight(value)
    for option in options:
        if weight(option) < bound:
            yield option


def _plainer_regimes(spec: InputSpec) -> Iterator[Regime]:
    """Regimes plainer than the input's that keep what an operator may rely on."""
    bound = REGIMES.index(spec.regime)
    match spec.regime:
        case Regime.UNIQUE:
            # 0, 1, 2, ... are distinct too, and they are below the bound because as many distinct values are.
            options: tuple[Regime, ...] = (Regime.IOTA,)
        case Regime.LENGTHS:
            options = ()
        case _ if spec.type.high is not None:
            iota_fits = spec.type.numel <= spec.type.high
            options = _PLAIN_INDEX_REGIMES if iota_fits else (Regime.INDEX,)
        case _:
            options = _PLAIN_REGIMES
    for option in options:
        if REGIMES.index(option) < bound and not (option is Regime.IOTA and spec.type.numel == 1):
            yield option


def _plainer(spec: InputSpec, regime: Regime) -> Regime:
    return regime if regime in _plainer_regimes(spec) else spec.regime


def _plain_dtype(dtype: DType) -> DType:
    if dtype.is_floating:
        return DType.FLOAT32
    return DType.INT64 if dtype.is_integer else dtype


def _plain_name(value: Literal) -> Literal:
    """float32 or int64 for another dtype's name; anything else unchanged."""
    if isinstance(value, str) and value in set(DType):
        return str(_plain_dtype(DType(value)))
    return value


def _one_input(program: Program, position: int, spec: InputSpec) -> Draft:
    return draft(program, inputs=(*program.inputs[:position], spec, *program.inputs[position + 1 :]))
