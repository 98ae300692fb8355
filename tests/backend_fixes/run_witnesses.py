"""Runs witness programs on the simulator, one forked child each.

Reads jobs from standard input, a line of JSON each: `[file, [slug, ...]]`. Answers each with a line of JSON on standard
output: `["right" | "wrong" | "raised" | "died", detail for people]`. The slugs name the defects to bring back.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SECONDS = 60
"""A job that takes longer is ended, and has died."""


def main() -> None:
    for name in ("TORCH_DEVICE_BACKEND_AUTOLOAD", "TORCH_WARM_POOL"):
        os.environ[name] = "0"
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    importlib.import_module("torch._inductor.compile_fx")  # once, for all children

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries that print must not answer
    for line in sys.stdin:
        file, slugs = json.loads(line)
        answers.write(json.dumps(_in_child(file, slugs)) + "\n")
        answers.flush()


def _in_child(file: str, slugs: Sequence[str]) -> tuple[str, str]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(SECONDS)
        try:
            said = _judge(file, slugs)
        except Exception as error:
            said = ("raised", f"{type(error).__name__}: {str(error)[:1000]}")
        with os.fdopen(writing, "w") as pipe:
            json.dump(said, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "died", signal.Signals(os.WTERMSIG(status)).name
    if not text:
        return "died", f"exit status {os.waitstatus_to_exitcode(status)}"
    answer, detail = json.loads(text)
    return answer, detail


def _judge(file: str, slugs: Sequence[str]) -> tuple[str, str]:
    from fuzzer import fixes
    from fuzzer.simnpu import Backend, SimOptions, install

    witness = runpy.run_path(file)
    mode: dict[str, Any] = witness.get("MODE", {})
    fixes.install(reintroduce=[fixes.find(slug) for slug in slugs])
    backend = Backend(mode.get("backend", Backend.TRITON_EXPERIMENTAL))
    install(SimOptions(backend=backend))
    import torch
    from torch.utils._pytree import tree_leaves

    program = witness["program"]

    def run(function: Callable[..., Any], device: str) -> list[torch.Tensor]:
        inputs = [_copy(value, device) for value in witness["inputs"]()]
        if mode.get("training"):
            inputs = [value.requires_grad_() if value.is_floating_point() else value for value in inputs]
        outputs = [torch.as_tensor(leaf) for leaf in tree_leaves(function(*inputs))]
        differentiable = [out for out in outputs if out.requires_grad]
        if differentiable:
            torch.autograd.backward(differentiable, [_cotangent(out) for out in differentiable])
        gradients = [value.grad for value in inputs if value.grad is not None]
        return [value.detach().cpu() for value in (*outputs, *inputs, *gradients)]

    torch.set_grad_enabled(not mode.get("inference", False))
    expected = run(program, "cpu")
    torch._dynamo.reset()
    options = mode.get("config", {})
    compiled = torch.compile(program, dynamic=mode.get("dynamic", False), options=options or None)
    found = run(compiled, "npu")
    for position, (right, actual) in enumerate(zip(expected, found, strict=True)):
        scale = right.double().nan_to_num(0, 0, 0).abs().max().item() if right.is_floating_point() else 0.0
        try:
            torch.testing.assert_close(actual, right, rtol=1e-3, atol=1e-3 * scale, equal_nan=True)
        except AssertionError as error:
            return "wrong", f"leaf {position}: {str(error)[:500]}"
    return "right", ""


def _cotangent(output: Any) -> Any:
    import torch

    return torch.arange(output.numel(), device=output.device).reshape(output.shape).remainder(5).to(output.dtype)


def _copy(value: Any, device: str) -> Any:
    import torch

    copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)
    return copy.copy_(value)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main()
