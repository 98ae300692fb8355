"""One run of one program: load its text, copy its inputs with their layout, call it, collect an `Observation`."""

from __future__ import annotations

import hashlib
import inspect
import linecache
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch.utils import _pytree as pytree

from fuzzer.observation import Leaf, Observation
from fuzzer.program import Case, FuzzerError
from fuzzer.targets.failures import PROGRAM_FILE, failure_of
from fuzzer.verdict import Stage

Breadcrumb: TypeAlias = Callable[[Stage, str], None]
"""Told before each step, so that a crash can be attributed by whoever listens."""

Value: TypeAlias = "torch.Tensor | bool | int | float"
Function: TypeAlias = Callable[..., object]

SEED = 20260801
"""Seed of torch's generators before each run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A program as a function, and its inputs on the CPU. The inputs are never run on: only copies are."""

    function: Function
    names: tuple[str, ...]
    inputs: tuple[Value, ...]


@dataclass(slots=True)
class Clock:
    """Seconds by stage of one program."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - begun

    def items(self) -> tuple[tuple[str, float], ...]:
        return tuple(self.seconds.items())


def load(case: Case) -> Loaded:
    """Makes `program` and its inputs from the text. Raises FuzzerError when the text does not define them."""
    digest = hashlib.sha256(case.source.encode()).hexdigest()[:12]
    file = f"{PROGRAM_FILE}{digest}>"
    linecache.cache[file] = (len(case.source), None, case.source.splitlines(keepends=True), file)
    names: dict[str, object] = {"__name__": f"program_{digest}", "__file__": file}
    try:
        exec(compile(case.source, file, "exec"), names)
    except Exception as error:
        raise FuzzerError(f"the program's text does not run: {type(error).__name__}: {error}") from error
    for needed in ("inputs", "program"):
        if not callable(names.get(needed)):
            raise FuzzerError(f"the program's text defines no {needed}(): a program file has inputs() and program()")
    make, function = names["inputs"], names["program"]
    assert callable(make)
    assert callable(function)
    torch.manual_seed(SEED)
    try:
        made = make()
    except Exception as error:
        raise FuzzerError(f"inputs() fails: {type(error).__name__}: {error}") from error
    values = made if isinstance(made, (tuple, list)) else (made,)
    for position, value in enumerate(values):
        if not isinstance(value, (torch.Tensor, bool, int, float)):
            raise FuzzerError(f"inputs() returns a {type(value).__name__} at {position}: use tensors or numbers")
    return Loaded(function=function, names=_argument_names(function, len(values)), inputs=tuple(values))


def _argument_names(function: Function, count: int) -> tuple[str, ...]:
    names = tuple(inspect.signature(function).parameters)
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError as error:
        raise FuzzerError(f"inputs() returns {count} values, but program({', '.join(names)}): {error}") from error
    return names[:count] if len(names) >= count else tuple(f"x{position}" for position in range(count))


Rewrite: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
"""What happens to the elements of a storage, as a flat tensor, while it is copied; may change the dtype."""


def copy_inputs(
    inputs: Sequence[Value], device: str = "cpu", *, training: bool = False, rewrite: Rewrite | None = None
) -> tuple[Value, ...]:
    """Fresh inputs on `device` with the same strides, storage offsets and aliasing. No copy is an autograd view.

    In training every floating input becomes a leaf that requires a gradient.
    """
    storages: dict[tuple[int, torch.dtype], torch.Tensor] = {}
    copies: list[Value] = []
    for value in inputs:
        if not isinstance(value, torch.Tensor):
            copies.append(value)
            continue
        # Tensors of different dtypes over one storage stay aliased as long as their elements are not rewritten.
        key = (value.untyped_storage()._cdata, value.dtype if rewrite else torch.uint8)
        if key not in storages:
            flat = torch.empty(0, dtype=key[1]).set_(value.untyped_storage())
            fresh = rewrite(flat) if rewrite else flat
            target = torch.empty(fresh.shape, dtype=fresh.dtype, device=device)
            target.copy_(fresh)
            storages[key] = target
        dtype = storages[key].dtype if rewrite else value.dtype
        copy = torch.empty(0, dtype=dtype, device=device)
        copy.set_(storages[key].untyped_storage(), value.storage_offset(), value.size(), value.stride())
        if training and dtype.is_floating_point:
            copy.requires_grad_()
        copies.append(copy)
    return tuple(copies)


def cotangent(tensor: torch.Tensor) -> torch.Tensor:
    """The fixed gradient of an output: small integers from -5 to 5, the same for equal shapes, uneven in every dim."""
    index = torch.arange(tensor.numel(), dtype=torch.int64)
    values = (index * index * 31 + index * 17 + 4) % 11 - 5
    return values.reshape(tensor.shape).to(tensor.dtype).to(tensor.device)


def run_once(
    function: Function,
    inputs: Sequence[Value],
    names: Sequence[str],
    *,
    target: str,
    stage: Stage,
    training: bool,
    breadcrumb: Breadcrumb,
) -> Observation:
    """Calls `function` on `inputs`, differentiates it in training, and collects what can be seen.

    An exception of the code under test becomes `Observation.failure`; `stage` says where it is if its traceback does
    not tell better.
    """
    torch.manual_seed(SEED)
    breadcrumb(stage, f"{target}: forward")
    try:
        returned = function(*inputs)
        outputs = _outputs(returned)
        gradients: tuple[Leaf, ...] = ()
        if training:
            breadcrumb(stage, f"{target}: backward")
            gradients = _gradients([value for _, value in outputs], inputs, names)
        breadcrumb(stage, f"{target}: read results")
        after = [(f"input[{name}]", value) for name, value in zip(names, inputs, strict=True)]
        leaves = _leaves([*after, *outputs])
    except FuzzerError:
        raise
    except Exception as error:
        return Observation(target=target, failure=failure_of(error, stage))
    return Observation(target=target, inputs=leaves[: len(after)], outputs=leaves[len(after) :], gradients=gradients)


def _outputs(returned: object) -> list[tuple[str, Value]]:
    leaves: list[tuple[str, Value]] = []
    for position, value in enumerate(pytree.tree_leaves(returned)):
        if value is None:
            continue
        if not isinstance(value, (torch.Tensor, bool, int, float)):
            raise FuzzerError(f"the program returns a {type(value).__name__}: only tensors and numbers can be compared")
        leaves.append((f"output[{position}]", value))
    return leaves


def _gradients(outputs: Sequence[Value], inputs: Sequence[Value], names: Sequence[str]) -> tuple[Leaf, ...]:
    """One leaf per floating input; an input that no output depends on has a gradient of zeros."""
    wanted = [
        (name, x) for name, x in zip(names, inputs, strict=True) if isinstance(x, torch.Tensor) and x.requires_grad
    ]
    sources = [y for y in outputs if isinstance(y, torch.Tensor) and y.requires_grad]
    if not wanted or not sources:
        return ()
    found = torch.autograd.grad(
        sources, [x for _, x in wanted], [cotangent(y) for y in sources], allow_unused=True, materialize_grads=True
    )
    return tuple(
        Leaf(path=f"gradient[{name}]", value=_on_cpu(grad), stride=tuple(grad.stride()))
        for (name, _), grad in zip(wanted, found, strict=True)
    )


def _on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", copy=True)


def _leaves(values: Sequence[tuple[str, Value]]) -> tuple[Leaf, ...]:
    owners: dict[tuple[str, int], str] = {}
    leaves: list[Leaf] = []
    for path, value in values:
        if not isinstance(value, torch.Tensor):
            leaves.append(
                Leaf(path=path, value=torch.tensor(value, dtype=_number_type(value)), stride=(), is_number=True)
            )
            continue
        storage = value.untyped_storage()
        alias = ""
        if storage.nbytes():
            alias = owners.setdefault((str(value.device), storage.data_ptr()), path)
        leaves.append(
            Leaf(
                path=path,
                value=_on_cpu(value),
                stride=tuple(value.stride()),
                requires_grad=value.requires_grad,
                alias=alias if alias != path else "",
            )
        )
    return tuple(leaves)


def _number_type(value: bool | int | float) -> torch.dtype:
    if isinstance(value, bool):
        return torch.bool
    return torch.int64 if isinstance(value, int) else torch.float64
