"""Backend fixes: known defects of the installed backend as data, brought back (or mended) in memory at import.

A `BackendFix` names the places that a fix changed, each as an `Edit`: a function of an installed module and the
smallest fragment of code in its fixed and in its defective form. `install` puts a finder in front of the import
system that edits those modules while they are imported. No file changes, and no bytecode is written.
"""

from __future__ import annotations

import difflib
import importlib.metadata
import importlib.util
import linecache
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from fuzzer import source_edit
from fuzzer.backports import StrEnum
from fuzzer.program import FuzzerError
from fuzzer.verdict import Kind


class State(StrEnum):
    """What the installed wheel holds of a fix."""

    PRESENT = "present"
    """The fix is in the wheel; its edits can bring the defect back."""
    ABSENT = "absent"
    """The wheel has the defect; the edits can mend it."""
    UNKNOWN = "unknown"
    """The wheel has neither form (another version), or is not installed."""


class Backend(StrEnum):
    """The Inductor backend of torch_npu that a fix belongs to (TORCHINDUCTOR_NPU_BACKEND)."""

    TRITON_EXPERIMENTAL = "triton_experimental"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One place that a fix changed. Fragments are compared as syntax trees: layout and comments do not matter."""

    module: str
    """Dotted name of the installed module."""
    function: str = ""
    """Qualified name of the function or class whose own code holds the fragment; empty for module level."""
    fixed: str
    """The fragment as the fix wrote it: an expression, or statements that follow one another."""
    defective: str
    """The fragment as it was; empty if the statements were missing (then only reintroduction is possible)."""
    matches: int = 1
    """How often the fragment stands in the function; all are edited."""

    def __post_init__(self) -> None:
        source_edit.fragments(self.fixed, self.defective)  # raises SyntaxError for what cannot be parsed

    @property
    def place(self) -> str:
        return f"{self.module}:{self.function or '(module level)'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendFix:
    """One real defect of the backend that was fixed (or whose fix is known)."""

    slug: str
    """Lower case with underscores; the module's name in `backend_fixes` and the name on the command line."""
    title: str
    reference: str
    """Issue or commit of the backend's public history."""
    kind: Kind
    """What a fuzzer sees of the defect."""
    symptom: str
    """One line for people: what goes wrong."""
    summary: str
    """What was wrong and why, in our own words."""
    trigger: str
    """A line of PyTorch, for people, that shows the defect."""
    edits: tuple[Edit, ...]
    backend: Backend = Backend.TRITON_EXPERIMENTAL
    config: tuple[tuple[str, bool | int | str], ...] = ()
    """Inductor options without which the defect stays hidden."""
    simulator: bool = True
    """False if only a real device shows the defect."""

    def __post_init__(self) -> None:
        if not self.slug.isidentifier() or self.slug != self.slug.lower():
            raise ValueError(f"slug {self.slug!r} is no lower-case identifier")
        if not self.edits:
            raise ValueError(f"{self.slug} has no edits")


def state(fix: BackendFix) -> State:
    """Compare the fix with the source of the installed wheel, without importing it."""
    states = [_state(edit) for edit in fix.edits]
    if State.UNKNOWN in states:
        return State.UNKNOWN
    return State.PRESENT if State.PRESENT in states else State.ABSENT


def explain(fix: BackendFix) -> str:
    """The state with what is behind it, in one line for people."""
    unknown = [edit for edit in fix.edits if _state(edit) is State.UNKNOWN]
    if not unknown:
        return f"{state(fix)} in {_version(fix.edits[0].module)}"
    edit = unknown[0]
    if locate(edit.module) is None:
        return f"unknown: {edit.module} is not in {_version(edit.module)}"
    return f"unknown: {edit.place} of {_version(edit.module)} has neither the fixed nor the defective form"


def install(reintroduce: Sequence[BackendFix] = (), fix: Sequence[BackendFix] = ()) -> None:
    """Edit the backend's modules when they are imported: bring defects back, or mend them.

    Call it before torch_npu is imported. Raises FuzzerError if an edited module is imported already, if an edit does
    not match the installed wheel, or if there is nothing to do (a defect that the wheel has, a fix that it has).
    """
    for defect in reintroduce:
        _require(defect, State.PRESENT)
    for cure in fix:
        _require(cure, State.ABSENT)
    replacements: dict[str, list[_Replacement]] = {}
    for defect in reintroduce:
        for edit in defect.edits:
            if _state(edit) is State.PRESENT:
                change = _Replacement(edit, edit.fixed, edit.defective, defect.slug)
                replacements.setdefault(edit.module, []).append(change)
    for cure in fix:
        for edit in cure.edits:
            replacements.setdefault(edit.module, []).append(_Replacement(edit, edit.defective, edit.fixed, cure.slug))
    for module in replacements:
        if module in sys.modules:
            raise FuzzerError(f"{module} is imported already: backend fixes must be installed before it is")
    if not replacements:
        return
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        raise FuzzerError("backend fixes are installed already: name all of them in one call, or uninstall first")
    for module, edits in replacements.items():  # tells at once what would fail at import
        path = locate(module)
        assert path is not None, module
        _apply(path.read_bytes(), edits)
    sys.meta_path.insert(0, _Finder(replacements))


def on_reach(hear: Callable[[str], None]) -> None:
    """Call `hear` with the slug of each defect as soon as a statement that it edited runs, once each."""
    _listeners.append(hear)
    _reached.clear()


def is_traced(fix: BackendFix) -> bool:
    """Whether it shows when an edited statement runs: not in code of Triton's, nor where a module is set up."""
    paths = {edit: locate(edit.module) for edit in fix.edits}
    return all(
        edit.function and path and not source_edit.is_compiled_by_triton(_source(path), edit.function)
        for edit, path in paths.items()
    )


def uninstall() -> None:
    """Remove the finder. Modules that were imported through it stay as they are until they are imported anew."""
    for finder in [finder for finder in sys.meta_path if isinstance(finder, _Finder)]:
        sys.meta_path.remove(finder)
        for path in finder.edited:
            linecache.cache.pop(path, None)


def find(name: str) -> BackendFix:
    """The fix of that slug, or the `FIX` that the Python file of that path defines. Raises FuzzerError."""
    from backend_fixes import FIXES  # the registry is built of this module's records

    for known in FIXES:
        if known.slug == name:
            return known
    if name.endswith(".py"):
        return _load(Path(name))
    near = difflib.get_close_matches(name, [known.slug for known in FIXES], n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else "`fuzz fixes` lists them."
    raise FuzzerError(f"no backend fix is called {name!r}: {hint}")


def _load(path: Path) -> BackendFix:
    if not path.is_file():
        raise FuzzerError(f"no backend fix at {path}: there is no such file")
    spec = importlib.util.spec_from_file_location(f"backend_fix_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise FuzzerError(f"{path} does not define a backend fix: {type(error).__name__}: {error}") from error
    found = getattr(module, "FIX", None)
    if not isinstance(found, BackendFix):
        raise FuzzerError(f"{path} does not define a backend fix: it needs a FIX of type BackendFix")
    return found


def _require(fix: BackendFix, wanted: State) -> None:
    found = state(fix)
    if found is wanted:
        return
    if found is State.UNKNOWN:
        raise FuzzerError(f"{fix.slug}: {explain(fix)}")
    version = _version(fix.edits[0].module)
    if wanted is State.PRESENT:
        raise FuzzerError(f"{fix.slug}: {version} has this defect already, there is nothing to reintroduce")
    raise FuzzerError(f"{fix.slug}: {version} has this fix already")


def _state(edit: Edit) -> State:
    path = locate(edit.module)
    if path is None:
        return State.UNKNOWN
    code = _source(path)
    fixed, defective = source_edit.fragments(edit.fixed, edit.defective)
    forms = [(fixed, State.PRESENT), (defective, State.ABSENT)]
    if fixed.is_within(defective):
        forms.reverse()  # the smaller form stands in the larger one too, so the larger one is looked for first
    for fragment, meaning in forms:
        if not fragment.is_empty and code.count(edit.function, fragment) == edit.matches:
            return meaning
    return State.UNKNOWN


def _source(path: Path) -> source_edit.Source:
    return _parsed(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _parsed(path: Path, _changed: int) -> source_edit.Source:
    return source_edit.Source(path.read_bytes())


def locate(module: str) -> Path | None:
    """The source file of an installed module; imports neither it nor its parents."""
    top, *rest = module.split(".")
    spec = PathFinder.find_spec(top)
    if spec is None:
        return None
    if not rest:
        return Path(spec.origin) if spec.origin else None
    for location in spec.submodule_search_locations or ():
        folder = Path(location).joinpath(*rest)
        for candidate in (folder.with_name(folder.name + ".py"), folder / "__init__.py"):
            if candidate.is_file():
                return candidate
    return None


def _version(module: str) -> str:
    top = module.partition(".")[0]
    try:
        return f"{top} {importlib.metadata.version(top)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{top} (not installed as a distribution)"


@dataclass(frozen=True, slots=True)
class _Replacement:
    edit: Edit
    old: str
    new: str
    slug: str


def _apply(source: bytes, replacements: Iterable[_Replacement]) -> tuple[bytes, dict[int, list[str]]]:
    """The edited text, and the slugs of what was edited by line."""
    places: dict[int, list[str]] = {}
    for replacement in replacements:
        edit = replacement.edit
        old, new = source_edit.fragments(replacement.old, replacement.new)
        code = source_edit.Source(source)
        found = code.count(edit.function, old)
        if found != edit.matches:
            raise FuzzerError(
                f"{edit.place} of {_version(edit.module)} does not match its backend fix: "
                f"found {found} times, not {edit.matches}: {replacement.old.strip()}"
            )
        for line in code.lines(edit.function, old):
            places.setdefault(line, []).append(replacement.slug)
        source = code.replace(edit.function, old, new)
    return source, places


_listeners: list[Callable[[str], None]] = []
_reached: set[str] = set()


def _reach(slug: str) -> None:
    if slug not in _reached:
        _reached.add(slug)
        for hear in _listeners:
            hear(slug)


class _EditedSource(SourceFileLoader):
    """Loads a module from edited text: never from cached bytecode, and writes none."""

    replacements: Sequence[_Replacement]
    edited: set[str]

    def path_stats(self, path: Any) -> Any:
        raise OSError("edited in memory: bytecode files do not apply")

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:  # type: ignore[override]  # typeshed's argument types differ between versions
        text, places = _apply(bytes(data), self.replacements)
        lines = text.decode().splitlines(keepends=True)
        # Tracebacks and Triton's own reader of sources show what runs. No time stamp: the file on disk stays unread.
        linecache.cache[str(path)] = (len(text), None, lines, str(path))
        self.edited.add(str(path))
        calls = {line: [_hook(slug) for slug in slugs] for line, slugs in places.items()}
        return super().source_to_code(source_edit.with_calls(text, calls), path, _optimize=_optimize)

    def exec_module(self, module: ModuleType) -> None:
        for replacement in self.replacements:
            module.__dict__[_hook(replacement.slug)] = partial(_reach, replacement.slug)
        super().exec_module(module)


def _hook(slug: str) -> str:
    """What edited modules call `_reach` for a defect."""
    return f"__reach_{slug}__"


class _Finder(MetaPathFinder):
    def __init__(self, replacements: dict[str, list[_Replacement]]) -> None:
        self.replacements = replacements
        self.edited: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.replacements:
            return None
        for finder in list(sys.meta_path):
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                break
        else:
            return None
        loader = spec.loader
        if isinstance(loader, _EditedSource):
            return spec  # the other finder asked this one
        if not isinstance(loader, SourceFileLoader):
            raise FuzzerError(f"{fullname} is not loaded from a source file: backend fixes cannot edit it")
        # Still whatever loads it, so an instrumenting loader (coverage guidance) keeps instrumenting; and the same
        # object, because another finder may have kept its methods.
        loader.__dict__.update(replacements=self.replacements[fullname], edited=self.edited)
        loader.__class__ = type("EditedSource", (_EditedSource, type(loader)), {})
        return spec
