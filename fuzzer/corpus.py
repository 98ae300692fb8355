"""Corpus entries: one finding as one Python file that runs with torch alone, and what is expected of it.

The file begins with a `# /// corpus` block of TOML in comments (the form of inline script metadata, PEP 723), then one
sentence as docstring, `inputs()`, `program(...)`, and a main part that prints eager and compiled results side by side.
"""

from __future__ import annotations

import ast
import difflib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fuzzer.backports import StrEnum, tomllib
from fuzzer.program import Case, FuzzerError, Mode
from fuzzer.verdict import Kind, Outcome, Signature, Stage, Verdict

OPENING = "# /// corpus"
CLOSING = "# ///"
ID = re.compile(r"[a-z0-9][a-z0-9_-]*")

FIELDS = (
    "id", "kind", "expect", "catches", "stage", "origin", "target", "backend",
    "training", "dynamic", "calls", "config", "found-on",
)  # fmt: skip
REQUIRED = ("id", "kind", "expect")

Value = TypeVar("Value")


class Expect(StrEnum):
    """What the released backend makes of an entry."""

    PASS = "pass"
    FAIL = "fail"
    """A defect that is open there."""


class Platform(StrEnum):
    """What an entry was found on. The simulator and the device are one: they run the same backend."""

    NPU = "npu"
    CPU = "cpu"
    CUDA = "cuda"

    @classmethod
    def of(cls, target: str) -> Platform:
        """The platform of a target's name."""
        return cls.NPU if target == "sim" else cls(target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One finding, filed."""

    id: str
    sentence: str
    case: Case
    signature: Signature
    expect: Expect
    catches: tuple[str, ...] = ()
    """Backend fixes whose reintroduction must make it fail."""
    target: Platform = Platform.NPU
    backend: str = ""
    """The Inductor backend of torch_npu that it was found on; empty for other platforms."""
    found_on: tuple[tuple[str, str], ...] = ()
    """Versions of the packages that it was found with."""

    def __post_init__(self) -> None:
        if not ID.fullmatch(self.id):
            raise ValueError(f"id {self.id!r}: small letters, digits, - and _ only")
        if self.catches and self.expect is Expect.FAIL:
            raise ValueError("what fails on the released backend cannot tell whether a defect was brought back")


class Standing(StrEnum):
    """How an entry's verdict compares with what was expected of it."""

    AS_EXPECTED = "as expected"
    UNDECIDED = "undecided"
    """Neither a pass nor a bug: near-tie, ill-conditioned, refused. Shown, and not counted as a failure."""
    FAILS = "fails"
    FIXED = "fixed? change expect to pass"
    CHANGED = "fails in another way"
    CAUGHT = "catches the defect"
    """A listed defect was brought back, and the entry fails: what the entry is for, and still a failure."""
    MISSED = "should have caught the defect"
    UNKNOWN = "nothing can be said"

    @property
    def is_fine(self) -> bool:
        return self in (Standing.AS_EXPECTED, Standing.UNDECIDED)


def compare(entry: Entry, verdict: Verdict, *, target: str, reintroduced: Iterable[str] = ()) -> Standing:
    """What a verdict means for an entry, with these defects brought back on this target."""
    failed = verdict.outcome is Outcome.BUG
    if verdict.outcome in (Outcome.LOST, Outcome.INVALID):
        return Standing.UNKNOWN
    if set(entry.catches) & set(reintroduced):
        return Standing.CAUGHT if failed else Standing.MISSED
    if entry.expect is Expect.PASS:
        if failed or verdict.outcome in (Outcome.RUN_FLAKY, Outcome.COMPILE_FLAKY):
            return Standing.FAILS
        return Standing.AS_EXPECTED if verdict.outcome is Outcome.PASS else Standing.UNDECIDED
    if Platform.of(target) is not entry.target:
        return Standing.AS_EXPECTED if failed or verdict.outcome is Outcome.PASS else Standing.UNDECIDED
    if not failed:
        return Standing.FIXED if verdict.outcome is Outcome.PASS else Standing.UNDECIDED
    same = verdict.signature is not None and verdict.signature.kind is entry.signature.kind
    return Standing.AS_EXPECTED if same else Standing.CHANGED


def find(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The entries' files among these files and folders, each once, in order. Raises FuzzerError for a wrong path."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            files = sorted(path.rglob("*.py"))
            if not files:
                raise FuzzerError(f"{path}: no .py file in this folder")
            found.update(dict.fromkeys(file for file in files if OPENING in file.read_text(encoding="utf-8")))
        elif path.is_file():
            found[path] = None
        else:
            raise FuzzerError(f"{path}: no such file or folder")
    return tuple(found)


def load(path: Path) -> Entry:
    """Reads an entry. Raises FuzzerError that names file, field, value and remedy."""
    text = _read(path)
    header = _header(path, text)
    if header is None:
        raise FuzzerError(f"{path}: no `{OPENING}` block at its beginning; `fuzz check` runs files without one")
    for name in REQUIRED:
        if name not in header:
            raise FuzzerError(f"{path}: field {name} is missing from the corpus block")
    identity = _text(path, header, "id")
    if identity != path.stem:
        raise FuzzerError(f"{path}: id = {identity!r}, but the file is called {path.stem!r}: rename one of them")
    kind = _choice(path, header, "kind", Kind)
    catches = header.get("catches", [])
    if not isinstance(catches, list) or not all(isinstance(slug, str) for slug in catches):
        raise FuzzerError(f"{path}: catches = {catches!r}: a list of backend fixes is wanted; see `fuzz fixes list`")
    found_on = header.get("found-on", {})
    if not isinstance(found_on, dict):
        raise FuzzerError(f"{path}: found-on = {found_on!r}: a table of package versions is wanted")
    sentence, source = _split(path, text)
    try:
        return Entry(
            id=identity,
            sentence=sentence,
            case=Case(source=source, mode=_mode(path, header)),
            signature=Signature(
                kind=kind,
                stage=_choice(path, header, "stage", Stage) if "stage" in header else Stage.JUDGE,
                origin=_text(path, header, "origin"),
            ),
            expect=_choice(path, header, "expect", Expect),
            catches=tuple(catches),
            target=_choice(path, header, "target", Platform) if "target" in header else Platform.NPU,
            backend=_text(path, header, "backend"),
            found_on=tuple((name, str(version)) for name, version in found_on.items()),
        )
    except ValueError as error:
        raise FuzzerError(f"{path}: {error}") from error


def load_case(path: Path) -> Case:
    """The program of any file that defines `inputs()` and `program(...)`; a corpus block may set its mode."""
    text = _read(path)
    header = _header(path, text)
    _, source = _split(path, text)
    return Case(source=source, mode=Mode() if header is None else _mode(path, header))


def render(entry: Entry) -> str:
    """The text of an entry's file."""
    mode = entry.case.mode
    fields: list[tuple[str, object]] = [
        ("id", entry.id),
        ("kind", str(entry.signature.kind)),
        ("stage", str(entry.signature.stage)),
        ("origin", entry.signature.origin),
        ("expect", str(entry.expect)),
        ("catches", list(entry.catches)),
        ("target", str(entry.target)),
        ("backend", entry.backend),
        ("training", mode.training),
        ("dynamic", mode.dynamic),
        ("calls", mode.calls if mode.calls != 1 else None),
        ("config", dict(mode.config)),
        ("found-on", dict(entry.found_on)),
    ]
    lines = [f"# {name} = {_toml(value)}" for name, value in fields if value]
    sentence = entry.sentence.replace("\\", "\\\\").replace('"""', "'''")
    return "\n".join(
        [OPENING, *lines, CLOSING, f'"""{sentence}"""', "", entry.case.source.strip(), "", "", _main_part(entry)]
    )


def save(entry: Entry, folder: Path) -> Path:
    """Writes an entry to `folder/<id>.py`, whole or not at all, and gives its path."""
    path = folder / f"{entry.id}.py"
    write_whole(path, render(entry))
    return path


def write_whole(path: Path, text: str) -> None:
    """Writes a file, whole or not at all, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FuzzerError(f"{path}: cannot be read: {error}") from error


def _header(path: Path, text: str) -> Mapping[str, Any] | None:
    """The corpus block as a mapping, or None where there is none."""
    lines = text.splitlines()
    if OPENING not in lines:
        return None
    begin = lines.index(OPENING) + 1
    if CLOSING not in lines[begin:]:
        raise FuzzerError(f"{path}: the corpus block has no end: a line `{CLOSING}` is missing")
    block = lines[begin : lines.index(CLOSING, begin)]
    for number, line in enumerate(block, begin + 1):
        if not line.startswith("#"):
            raise FuzzerError(f"{path}:{number}: {line!r} in the corpus block does not begin with #")
    try:
        header = tomllib.loads("\n".join(line[1:].removeprefix(" ") for line in block))
    except tomllib.TOMLDecodeError as error:
        raise FuzzerError(f"{path}: the corpus block is not TOML: {error}") from error
    for name in header:
        if name not in FIELDS:
            near = difflib.get_close_matches(name, FIELDS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(FIELDS)}"
            raise FuzzerError(f"{path}: unknown field {name} = {header[name]!r} in the corpus block; {hint}")
    return header


def _text(path: Path, header: Mapping[str, Any], name: str) -> str:
    value = header.get(name, "")
    if not isinstance(value, str):
        raise FuzzerError(f"{path}: {name} = {value!r}: text in quotes is wanted")
    return value


def _choice(path: Path, header: Mapping[str, Any], name: str, choice: Callable[[str], Value]) -> Value:
    value = _text(path, header, name)
    try:
        return choice(value)
    except ValueError as error:
        known = ", ".join(str(member) for member in choice)  # type: ignore[attr-defined]  # an enumeration
        raise FuzzerError(f"{path}: {name} = {value!r}: one of {known} is wanted") from error


def _mode(path: Path, header: Mapping[str, Any]) -> Mode:
    flags: dict[str, bool] = {}
    for name in ("training", "dynamic"):
        value = header.get(name, False)
        if not isinstance(value, bool):
            raise FuzzerError(f"{path}: {name} = {value!r}: true or false is wanted")
        flags[name] = value
    calls = header.get("calls", 1)
    if not isinstance(calls, int) or isinstance(calls, bool) or calls < 1:
        raise FuzzerError(f"{path}: calls = {calls!r}: a positive number is wanted")
    config = header.get("config", {})
    if not isinstance(config, dict) or not all(isinstance(value, (bool, int, str)) for value in config.values()):
        raise FuzzerError(f"{path}: config = {config!r}: a table of Inductor options is wanted")
    return Mode(training=flags["training"], dynamic=flags["dynamic"], calls=calls, config=tuple(config.items()))


def _split(path: Path, text: str) -> tuple[str, str]:
    """The docstring, and the program's own text: without corpus block, docstring and main part."""
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise FuzzerError(f"{path}:{error.lineno}: not Python: {error.msg}") from error
    defined = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
    for name in ("inputs", "program"):
        if name not in defined:
            raise FuzzerError(f"{path}: no `def {name}(...)`: inputs() gives the arguments that program(...) takes")
    lines = text.splitlines()
    if OPENING in lines:
        begin = lines.index(OPENING)
        for number in range(begin, lines.index(CLOSING, begin) + 1):
            lines[number] = ""
    sentence = ast.get_docstring(module) or ""
    dropped = [module.body[0]] if sentence else []
    dropped += [node for node in module.body if isinstance(node, ast.If) and _is_main_part(node)]
    for node in dropped:
        for number in range(node.lineno - 1, node.end_lineno or node.lineno):
            lines[number] = ""
    return sentence, "\n".join(lines).strip() + "\n"


def _is_main_part(node: ast.If) -> bool:
    return ast.unparse(node.test).replace('"', "'") == "__name__ == '__main__'"


def _toml(value: object) -> str:
    """A value as TOML on one line. JSON's strings, numbers, booleans and lists are TOML's."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


MAIN_PART = """\
if __name__ == "__main__":
    try:
        import torch_npu

        device = "npu" if torch_npu.npu.is_available() else "cpu"
    except ImportError:
        device = "cuda" if torch.cuda.is_available() else "cpu"

    def on_device(x):  # a copy with the same strides
        memory = x.as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
        return memory.to(device, copy=True).as_strided(x.shape, x.stride(), x.storage_offset())

    def results(function):
        arguments = [on_device(x) for x in inputs()]
        torch.manual_seed(20260801)
@RUN@

    options = @OPTIONS@
    compiled_program = torch.compile(program@COMPILE@)
    for call in range(@CALLS@):
        for name, eager, compiled in zip(("outputs", "arguments"@NAMES@), results(program), results(compiled_program)):
            print(f"{name} on {device}, eager: {eager}")
            print(f"{name} on {device}, compiled: {compiled}")
"""

FORWARD = """\
        return function(*arguments), arguments"""

TRAINING = """\
        leaves = [x.requires_grad_() for x in arguments if x.is_floating_point()]
        outputs = function(*arguments)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        roots = [y for y in outputs if torch.is_tensor(y) and y.requires_grad]
        counts = [torch.arange(y.numel(), device=device).reshape(y.shape) for y in roots]
        weights = [((i * i * 31 + i * 17 + 4) % 11 - 5).to(y.dtype) for i, y in zip(counts, roots)]
        gradients = torch.autograd.grad(roots, leaves, weights, allow_unused=True)
        return outputs, arguments, gradients"""


def _main_part(entry: Entry) -> str:
    mode = entry.case.mode
    arguments = ", dynamic=True" if mode.dynamic else ""
    text = MAIN_PART.replace("@RUN@", TRAINING if mode.training else FORWARD)
    text = text.replace("@NAMES@", ', "gradients"' if mode.training else "").replace("@CALLS@", str(mode.calls))
    if mode.config:
        text = text.replace("@OPTIONS@", repr(dict(mode.config)))
        arguments += ", options=options"
    else:
        text = text.replace("    options = @OPTIONS@\n", "")
    return text.replace("@COMPILE@", arguments)
