"""One input <-> the expression that makes it, the same bytes every time.

`seeded` is `torch.Generator().manual_seed`. The values come first:

    EXACT    torch.randint(-4, 5, (2, 3), generator=seeded(7))
    IOTA     torch.arange(6).reshape(2, 3)
    NORMAL   torch.randn((2, 3), generator=seeded(7))            bool: torch.rand((2, 3), ...) < 0.5
    WIDE     torch.ldexp(torch.randn(...), torch.randint(-8, 9, ...))   integers: torch.randint(-99999, 100000, ...)
    SPECIALS torch.where(torch.rand(...) < 0.9, torch.randn(...), torch.tensor([...])[torch.randint(0, 6, ...)])
    SPARSE   torch.randn(...) * (torch.rand(...) < 0.1)          bool: torch.rand((2, 3), ...) < 0.1
    INDEX    torch.randint(0, 9, (2, 3), generator=seeded(7))
    UNIQUE   torch.randperm(9, generator=seeded(7))[:6].reshape(2, 3)
    LENGTHS  torch.bincount(torch.randint(0, 3, (5,), generator=seeded(7)), minlength=3) + 1
    ZEROS    torch.zeros((2, 3), dtype=torch.int64)              ONES likewise

then `.to(torch.float16)` where that is not the dtype already, then the layout: `.permute(1, 0)`, `[:, 1::2]` or
`.expand(2, 3)`. Several draws in one expression take the seeds 7, 8 and 9.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from math import prod

from fuzzer.ops.rules import make
from fuzzer.ops.spec import IllTyped, Params
from fuzzer.program import DType, FuzzerError, InputSpec, Layout, LayoutKind, Literal, Regime, TensorType
from fuzzer.template import Template, literal_text, literal_value

_GENERATED = "generator=seeded({seed})"
_SPECIALS = '[float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e-40]'
_FLOAT_FORMS = {
    Regime.EXACT: f"torch.randint(-4, 5, {{shape}}, {_GENERATED})",
    Regime.IOTA: "torch.arange({numel}).reshape({shape})",
    Regime.NORMAL: f"torch.randn({{shape}}, {_GENERATED})",
    Regime.WIDE: f"torch.ldexp(torch.randn({{shape}}, {_GENERATED}), "
    "torch.randint(-8, 9, {shape}, generator=seeded({seed2})))",
    Regime.SPECIALS: f"torch.where(torch.rand({{shape}}, {_GENERATED}) < 0.9, "
    f"torch.randn({{shape}}, generator=seeded({{seed2}})), "
    f"torch.tensor({_SPECIALS})[torch.randint(0, 6, {{shape}}, generator=seeded({{seed3}}))])",
    Regime.SPARSE: f"torch.randn({{shape}}, {_GENERATED}) * (torch.rand({{shape}}, generator=seeded({{seed2}})) < 0.1)",
    Regime.ZEROS: "torch.zeros({shape}, dtype={dtype})",
    Regime.ONES: "torch.ones({shape}, dtype={dtype})",
}
_INTEGER_FORMS = {
    Regime.EXACT: f"torch.randint(-4, 5, {{shape}}, {_GENERATED})",
    Regime.IOTA: "torch.arange({numel}).reshape({shape})",
    Regime.WIDE: f"torch.randint(-99999, 100000, {{shape}}, {_GENERATED})",
    Regime.SPARSE: f"torch.randint(-4, 5, {{shape}}, {_GENERATED}) * "
    "(torch.rand({shape}, generator=seeded({seed2})) < 0.1)",
    Regime.INDEX: f"torch.randint(0, {{high}}, {{shape}}, {_GENERATED})",
    Regime.UNIQUE: f"torch.randperm({{high}}, {_GENERATED})[:{{numel}}].reshape({{shape}})",
    Regime.LENGTHS: f"torch.bincount(torch.randint(0, {{numel}}, {{extra}}, {_GENERATED}), minlength={{numel}}) + 1",
    Regime.ZEROS: _FLOAT_FORMS[Regime.ZEROS],
    Regime.ONES: _FLOAT_FORMS[Regime.ONES],
}
_BOOL_FORMS = {
    Regime.NORMAL: f"torch.rand({{shape}}, {_GENERATED}) < 0.5",
    Regime.SPARSE: f"torch.rand({{shape}}, {_GENERATED}) < 0.1",
    Regime.ZEROS: _FLOAT_FORMS[Regime.ZEROS],
    Regime.ONES: _FLOAT_FORMS[Regime.ONES],
}
_WHOLE_IN_ANY_DTYPE = (Regime.EXACT, Regime.IOTA)
_SEEDED = (
    Regime.EXACT,
    Regime.NORMAL,
    Regime.WIDE,
    Regime.SPECIALS,
    Regime.SPARSE,
    Regime.INDEX,
    Regime.UNIQUE,
    Regime.LENGTHS,
)


def _forms(dtype: DType) -> dict[Regime, str]:
    return _FLOAT_FORMS if dtype.is_floating else _INTEGER_FORMS if dtype.is_integer else _BOOL_FORMS


def regimes_of(dtype: DType, bounded: bool) -> tuple[Regime, ...]:
    """The regimes that suit a dtype; `bounded` asks for integers that can serve as positions."""
    bound = (Regime.INDEX, Regime.UNIQUE, Regime.LENGTHS, Regime.ZEROS, Regime.ONES, Regime.IOTA)
    unbound = (Regime.EXACT, Regime.WIDE, Regime.SPARSE)
    found = _forms(dtype)
    if not dtype.is_integer:
        return tuple(found)
    return tuple(regime for regime in found if regime in (bound if bounded else unbound))


def _natural_dtype(spec: InputSpec) -> DType:
    if spec.regime in (Regime.ZEROS, Regime.ONES) or spec.type.dtype is DType.BOOL:
        return spec.type.dtype
    if spec.type.dtype.is_integer or spec.regime in _WHOLE_IN_ANY_DTYPE:
        return DType.INT64
    return DType.FLOAT32


def base_shape(spec: InputSpec) -> tuple[int, ...]:
    """The shape of the tensor that the layout is then applied to."""
    shape, layout = list(spec.type.shape), spec.layout
    match layout.kind:
        case LayoutKind.CONTIGUOUS:
            pass
        case LayoutKind.PERMUTED:
            for where, dim in enumerate(layout.dims):
                shape[dim] = spec.type.shape[where]
        case LayoutKind.STRIDED:
            dim = layout.dims[0]
            shape[dim] = layout.offset + (shape[dim] - 1) * layout.step + 1
        case LayoutKind.EXPANDED:
            for dim in layout.dims:
                shape[dim] = 1
    return tuple(shape)


def _check_layout(spec: InputSpec) -> None:
    rank, layout, dims = spec.type.rank, spec.layout, spec.layout.dims
    if layout.kind is not LayoutKind.STRIDED and (layout.offset, layout.step) != (0, 1):
        raise IllTyped(f"{spec.name}: only a strided layout has an offset and a step")
    if any(not 0 <= dim < rank for dim in dims) or len(set(dims)) != len(dims):
        raise IllTyped(f"{spec.name}: layout dims {dims} of a tensor of rank {rank}")
    match layout.kind:
        case LayoutKind.CONTIGUOUS:
            good = not dims
        case LayoutKind.PERMUTED:
            good = len(dims) == rank and dims != tuple(range(rank))
        case LayoutKind.STRIDED:
            good = len(dims) == 1 and layout.offset >= 0 and layout.step >= 1
            good = good and (layout.offset, layout.step) != (0, 1)
        case LayoutKind.EXPANDED:
            good = bool(dims) and list(dims) == sorted(dims) and all(spec.type.shape[dim] > 1 for dim in dims)
            good = good and spec.regime not in (Regime.UNIQUE, Regime.IOTA)
    if not good or (spec.regime is Regime.LENGTHS and layout.kind is not LayoutKind.CONTIGUOUS):
        raise IllTyped(f"{spec.name}: layout {layout.kind} along {dims} does not suit it")


def canonical_high(spec: InputSpec) -> int | None:
    """The bound of an integer input, which its regime may fix."""
    if not spec.type.dtype.is_integer:
        return None
    if spec.regime in (Regime.EXACT, Regime.WIDE, Regime.SPARSE):
        return None
    fixed = {Regime.ZEROS: 1, Regime.ONES: 2, Regime.IOTA: prod(base_shape(spec))}
    return fixed.get(spec.regime, spec.type.high)


def check_input(spec: InputSpec) -> InputSpec:
    """The input with its bound set by its regime; raises IllTyped when no expression can make it."""
    if not spec.name.isidentifier() or spec.name in ("torch", "seeded"):
        raise IllTyped(f"{spec.name} is no name for an input")
    if spec.regime not in _forms(spec.type.dtype):
        raise IllTyped(f"{spec.name}: regime {spec.regime} does not suit {spec.type.dtype}")
    _check_layout(spec)
    high = canonical_high(spec)
    if spec.regime in (Regime.INDEX, Regime.UNIQUE, Regime.LENGTHS) and (high is None or high < 1):
        raise IllTyped(f"{spec.name}: regime {spec.regime} needs a bound")
    if spec.regime is Regime.UNIQUE and prod(base_shape(spec)) > (high or 0):
        raise IllTyped(f"{spec.name}: {prod(base_shape(spec))} different values below {high}")
    if spec.regime is Regime.LENGTHS and (spec.type.rank != 1 or (high or 0) - 1 < spec.type.shape[0]):
        raise IllTyped(f"{spec.name}: lengths have one dim, and their sum is at least their number")
    seed = spec.seed if spec.regime in _SEEDED else 0
    return replace(spec, type=make(spec.type.shape, spec.type.dtype, high), seed=seed)


_TEMPLATES: dict[str, Template] = {}


def _template(text: str) -> Template:
    if text not in _TEMPLATES:
        _TEMPLATES[text] = Template(text, ())
    return _TEMPLATES[text]


def expression(spec: InputSpec) -> str:
    """The Python expression that makes an input (one that `check_input` accepted)."""
    shape = base_shape(spec)
    literals: dict[str, Literal] = {
        "shape": shape,
        "numel": prod(shape),
        "high": spec.type.high,
        "seed": spec.seed,
        "seed2": spec.seed + 1,
        "seed3": spec.seed + 2,
        "dtype": str(spec.type.dtype),
        "extra": ((spec.type.high or 0) - 1 - prod(shape),),
    }
    text = _template(_forms(spec.type.dtype)[spec.regime]).fill("x", {}, literals).removeprefix("x = ")
    suffix = "" if _natural_dtype(spec) is spec.type.dtype else f".to(torch.{spec.type.dtype})"
    suffix += _layout_text(spec)
    binary = (
        spec.regime is Regime.LENGTHS
        or (" < 0." in text and text.startswith("torch.rand("))
        or (spec.regime is Regime.SPARSE)
    )
    return f"({text}){suffix}" if suffix and binary else text + suffix


def _layout_text(spec: InputSpec) -> str:
    layout = spec.layout
    match layout.kind:
        case LayoutKind.CONTIGUOUS:
            return ""
        case LayoutKind.PERMUTED:
            return f".permute({', '.join(map(str, layout.dims))})"
        case LayoutKind.EXPANDED:
            return f".expand({', '.join(map(str, spec.type.shape))})"
        case LayoutKind.STRIDED:
            start = str(layout.offset) if layout.offset else ""
            step = f":{layout.step}" if layout.step != 1 else ""
            return "[" + ":, " * layout.dims[0] + f"{start}:{step}]"


def _integers(items: list[ast.expr]) -> tuple[int, ...]:
    values = [literal_value(item) for item in items]
    return tuple(value for value in values if isinstance(value, int))


def _strip_layout(node: ast.expr) -> tuple[ast.expr, Layout, tuple[int, ...]]:
    """The expression without its layout, the layout, and the sizes of an expand."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="permute"), args=args):
            return inner, Layout(kind=LayoutKind.PERMUTED, dims=_integers(args)), ()
        case ast.Call(func=ast.Attribute(value=inner, attr="expand"), args=args):
            return inner, Layout(kind=LayoutKind.EXPANDED), _integers(args)
        case ast.Subscript(value=inner, slice=ast.Slice() | ast.Tuple() as found):
            slices = found.elts if isinstance(found, ast.Tuple) else [found]
            last = slices[-1]
            if isinstance(last, ast.Slice) and last.upper is None:
                start = _integers([last.lower] if last.lower else [])
                step = _integers([last.step] if last.step else [])
                layout = Layout(
                    kind=LayoutKind.STRIDED,
                    dims=(len(slices) - 1,),
                    offset=start[0] if start else 0,
                    step=step[0] if step else 1,
                )
                return inner, layout, ()
    return node, Layout(), ()


def _final_shape(base: tuple[int, ...], layout: Layout, sizes: tuple[int, ...]) -> tuple[int, ...]:
    match layout.kind:
        case LayoutKind.PERMUTED:
            return tuple(base[dim] for dim in layout.dims)
        case LayoutKind.EXPANDED:
            return sizes
        case LayoutKind.STRIDED:
            dim = layout.dims[0]
            count = len(range(layout.offset, base[dim], layout.step))
            return (*base[:dim], count, *base[dim + 1 :])
        case _:
            return base


def read_expression(name: str, node: ast.expr) -> InputSpec:
    """The input that an expression makes; raises FuzzerError with the line and what to write instead."""
    for spec in _candidates(name, node):
        try:
            found = check_input(spec)
        except (IllTyped, ValueError):
            continue
        if ast.dump(ast.parse(expression(found), mode="eval").body) == ast.dump(node):
            return found
    text = ast.unparse(node)
    raise FuzzerError(
        f"line {node.lineno}: the input {name} = {text} is none of the known forms; "
        "write it as one of those that fuzzer/input_source.py lists, for example "
        f"torch.randn({literal_text((2, 3))}, generator=seeded(0))"
    )


def _candidates(name: str, node: ast.expr) -> list[InputSpec]:
    plain, layout, sizes = _strip_layout(node)
    dtype: DType | None = None
    match plain:
        case ast.Call(func=ast.Attribute(value=inner, attr="to"), args=[ast.Attribute(attr=attr)]) if attr in set(
            DType
        ):
            plain, dtype = inner, DType(attr)
    statement: list[ast.stmt] = [ast.Assign(targets=[ast.Name(id="x", ctx=ast.Store())], value=plain)]
    found = []
    for kind in (DType.FLOAT32, DType.INT64, DType.BOOL):
        for regime, text in _forms(kind).items():
            match = _template(text).match(statement, 0)
            if match is not None:
                whole = kind is DType.FLOAT32 and regime in _WHOLE_IN_ANY_DTYPE
                natural = match.literals.get("dtype", DType.INT64 if whole else kind)
                spec = _spec(
                    name, regime, Params(tuple(match.literals.items())), dtype or DType(str(natural)), layout, sizes
                )
                if spec is not None:
                    found.append(spec)
    return found


def _spec(
    name: str, regime: Regime, found: Params, dtype: DType, layout: Layout, sizes: tuple[int, ...]
) -> InputSpec | None:
    """The input that a matched form describes, or None where its numbers make no shape."""
    try:
        high = None
        if regime is Regime.LENGTHS:
            base: tuple[int, ...] = (found.integer("numel"),)
            high = found.integers("extra")[0] + found.integer("numel") + 1
        else:
            base = found.integers("shape")
            high = found.integer("high") if regime in (Regime.INDEX, Regime.UNIQUE) else None
        if layout.kind is LayoutKind.EXPANDED:
            layout = replace(layout, dims=tuple(dim for dim, size in enumerate(base) if size == 1 and sizes[dim] > 1))
        shape = _final_shape(base, layout, sizes)
        seed = found.integer("seed") if regime in _SEEDED else 0
        kind = TensorType(shape=shape, dtype=dtype, high=high)
    except (IllTyped, IndexError, ValueError):
        return None
    return InputSpec(name=name, type=kind, regime=regime, layout=layout, seed=seed)
