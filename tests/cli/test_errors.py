"""Every wrong use is one clear line that names the value and the remedy, with exit status 2."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuzzer.cli import COMMANDS, main
from tests.campaign.programs import PARSED


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "No such command 'fly'"),
        (["run", "--time", "soon"], "'soon' is not a time: write 300s, 10m, 2h or 3d"),
        (["run", "--time", "0"], "'0' is not a time"),
        (["run", "--programs", "0"], "'--programs': 0 is not in the range x>=1"),
        (["run", "--seed", "-1"], "-1 is not in the range x>=0"),
        (["run", "--workers", "none"], "'none' is not a valid integer"),
        (["run", "--target", "tpu"], "'tpu' is not one of 'sim', 'npu', 'cpu', 'cuda'"),
        (["run", "--backend", "best"], "'best' is not one of 'triton_experimental', 'default'"),
        (["run", "--families", "masking,sorting"], "'sorting' is none; use some of reductions, "),
        (["run", "--resume"], "--resume needs --out"),
        (["run", "--reintroduce", "rsplit_output"], "rsplit_output_binding"),
        (["run", "--target", "cpu", "--reintroduce", "downcast_inout"], "target cpu does not run it; use --target sim"),
        (["run", "--backend", "default", "--reintroduce", "downcast_inout"], "add --backend triton_experimental"),
        (["check"], "Missing argument 'FILE'"),
        (["check", "gone.py", "--target", "cpu"], "gone.py: cannot be read"),
        (["show", "gone.py"], "gone.py: cannot be read"),
        (["minimize", "gone.py"], "gone.py: cannot be read"),
        (["replay"], "Missing argument 'PATHS...'"),
        (["replay", "gone"], "gone: no such file or folder"),
        (["replay", "."], "no .py file in this folder"),
        (["fixes", "show", "nothing_like_it"], "nothing_like_it"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_is_one_clear_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err
    assert "Traceback" not in said.err
    assert not list(tmp_path.iterdir())


def test_a_text_of_unknown_operators_cannot_be_minimized_and_says_which(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(PARSED.replace("x0 + x0", "torch.special.zeta(x0, x0)"))
    assert main(["minimize", str(path), "--target", "cpu"]) == 2
    assert "zeta" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert "Usage: fuzz" in capsys.readouterr().out


def test_help_comes_at_once_and_imports_nothing_heavy() -> None:
    code = """if True:
        import sys, fuzzer.cli
        fuzzer.cli.main(["--help"])
        print([name for name in ("torch", "hypothesis", "rich") if name in sys.modules])"""
    begun = time.process_time()
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"
    assert time.process_time() - begun < 0.5
