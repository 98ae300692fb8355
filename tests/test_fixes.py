"""Backend fixes: states, edits in memory, and the errors of what does not fit. On a small package made here."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend_fixes import FIXES
from fuzzer import fixes, source_edit
from fuzzer.fixes import BackendFix, Edit, State
from fuzzer.program import FuzzerError
from fuzzer.verdict import Kind

SOURCE = '''\
"""A stand-in for an installed backend. Löschen: no ASCII here."""

GATE: bool = True


class Kernel:
    ROUNDS = 6

    def rank(self, counts):
        total = 0
        for count in counts:
            total += (count
                      if count
                      else 1)  # a fix, over several lines
        self.seen = total
        total = self.check(total)
        return total

    def check(self, total):
        return total + self.ROUNDS

    def fails(self):
        return 1 / 0


def outer(values):
    def inner(value):
        return value if value else 0

    return [inner(value) for value in values if value]


def twice(a):
    b = a + 1
    c = a + 1
    return b, c
'''


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package `toywheel` with a module `codegen` on the path; gone from the import system afterwards."""
    package = tmp_path / "toywheel"
    package.mkdir()
    (package / "__init__.py").write_text("LOADED = True\n")
    (package / "codegen.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield package
    fixes.uninstall()
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "toywheel"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def load() -> ModuleType:
    return importlib.import_module("toywheel.codegen")


def fix_of(*edits: Edit, slug: str = "toy") -> BackendFix:
    return BackendFix(
        slug=slug,
        title="",
        reference="",
        kind=Kind.WRONG_RESULT,
        symptom="",
        summary="",
        trigger="",
        edits=edits,
    )


def edit(fixed: str, defective: str, function: str = "Kernel.rank", matches: int = 1) -> Edit:
    return Edit(module="toywheel.codegen", function=function, fixed=fixed, defective=defective, matches=matches)


RANK = edit("total += count if count else 1", "total += count")


def test_reintroduced_defect_acts_in_the_imported_module(wheel: Path) -> None:
    fixes.install(reintroduce=[fix_of(RANK)])
    assert load().Kernel().rank([0, 2]) == 2 + 6


def test_it_is_told_once_that_an_edited_statement_ran(wheel: Path) -> None:
    heard: list[str] = []
    other = edit("value if value else 0", "value", "outer.inner")
    fixes.install(reintroduce=[fix_of(RANK, slug="rank"), fix_of(other, slug="inner")])
    fixes.on_reach(heard.append)
    module = load()
    assert module.twice(1) == (2, 2)
    assert module.outer([]) == []
    module.Kernel().rank([])
    assert heard == []  # the functions ran, their edited statements did not
    module.Kernel().rank([1, 2])
    module.Kernel().rank([3])
    assert heard == ["rank"]
    module.outer([5])
    assert heard == ["rank", "inner"]


def test_what_python_does_not_run_is_not_traced(wheel: Path) -> None:
    text = SOURCE + "\n\n@triton.jit\ndef kernel(x):\n    return x + 1\n"
    (wheel / "codegen.py").write_text(text, encoding="utf-8")
    assert fixes.is_traced(fix_of(RANK))
    assert not fixes.is_traced(fix_of(RANK, edit("x + 1", "x", "kernel")))
    assert not fixes.is_traced(fix_of(edit("GATE: bool = True", "GATE: bool = False", "")))


def test_after_uninstall_the_module_imports_as_it_is_on_disk(wheel: Path) -> None:
    fixes.install(reintroduce=[fix_of(RANK)])
    load()
    fixes.uninstall()
    forget()
    assert load().Kernel().rank([0, 2]) == 1 + 2 + 6
    assert "if count" in inspect.getsource(load().Kernel.rank)


def test_no_file_changes_and_no_bytecode_of_the_edited_module_is_written(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    before = {path: path.read_bytes() for path in wheel.rglob("*.py")}
    fixes.install(reintroduce=[fix_of(RANK)])
    load()
    assert {path: path.read_bytes() for path in wheel.rglob("*.py")} == before
    assert not list(wheel.rglob("codegen*.pyc"))


def test_cached_bytecode_of_the_unedited_module_is_not_used(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    load()
    assert list(wheel.rglob("codegen*.pyc"))
    forget()
    fixes.install(reintroduce=[fix_of(RANK)])
    assert load().Kernel().rank([0, 2]) == 2 + 6


def test_tracebacks_keep_file_and_line_and_show_the_edited_text(wheel: Path) -> None:
    fixes.install(reintroduce=[fix_of(RANK)])
    module = load()
    with pytest.raises(ZeroDivisionError) as caught:
        module.Kernel().fails()
    last = traceback.extract_tb(caught.tb)[-1]
    assert last.filename == str(wheel / "codegen.py")
    assert last.lineno == SOURCE.splitlines().index("        return 1 / 0") + 1
    assert last.line == "return 1 / 0"
    assert "total += count\n" in inspect.getsource(module.Kernel.rank)


def test_missing_statement_is_an_edit_too(wheel: Path) -> None:
    fixes.install(reintroduce=[fix_of(edit("total = self.check(total)", ""))])
    assert load().Kernel().rank([3]) == 3


def test_module_level_and_class_level_statements_can_be_edited(wheel: Path) -> None:
    fixes.install(
        reintroduce=[
            fix_of(
                edit("GATE: bool = True", "GATE: bool = False", function=""),
                edit("ROUNDS = 6", "ROUNDS = 1", function="Kernel"),
            )
        ]
    )
    assert load().GATE is False
    assert load().Kernel.ROUNDS == 1


def test_a_nested_function_is_edited_apart_from_the_one_around_it(wheel: Path) -> None:
    fixes.install(reintroduce=[fix_of(edit("value", "5", function="outer.inner", matches=2))])
    assert load().outer([7]) == [5]


def test_all_matches_are_edited_and_their_number_must_be_right(wheel: Path) -> None:
    once, both = (edit("a + 1", "a + 2", function="twice", matches=count) for count in (1, 2))
    assert fixes.state(fix_of(once)) is State.UNKNOWN
    fixes.install(reintroduce=[fix_of(both)])
    assert load().twice(0) == (2, 2)


def test_the_same_edit_mends_a_wheel_that_has_the_defect(wheel: Path) -> None:
    text = SOURCE.replace("(count\n                      if count\n                      else 1)", "count")
    (wheel / "codegen.py").write_text(text, encoding="utf-8")
    assert fixes.state(fix_of(RANK)) is State.ABSENT
    fixes.install(fix=[fix_of(RANK)])
    assert load().Kernel().rank([0, 2]) == 1 + 2 + 6


def test_states_are_told_without_importing_the_wheel(wheel: Path) -> None:
    assert fixes.state(fix_of(RANK)) is State.PRESENT
    assert fixes.state(fix_of(edit("total += 7", "total += 8"))) is State.UNKNOWN
    assert "toywheel" not in sys.modules


def test_unknown_state_names_version_module_and_function(wheel: Path) -> None:
    said = fixes.explain(fix_of(edit("total += 7", "total += 8")))
    assert "toywheel.codegen:Kernel.rank" in said
    assert "toywheel (not installed as a distribution)" in said


def test_a_form_that_holds_the_other_decides_the_state(wheel: Path) -> None:
    longer = edit("self.seen = total\ntotal = self.check(total)", "self.seen = total")
    assert fixes.state(fix_of(longer)) is State.PRESENT
    reverse = edit("self.seen = total", "self.seen = total\ntotal = self.check(total)")
    assert fixes.state(fix_of(reverse)) is State.ABSENT


def test_an_edit_that_does_not_match_is_an_error_and_no_silent_omission(wheel: Path) -> None:
    with pytest.raises(FuzzerError, match=r"toywheel\.codegen:Kernel\.rank"):
        fixes.install(reintroduce=[fix_of(edit("total += 7", "total += 8"))])
    assert load().Kernel().rank([0]) == 7


def test_a_wheel_that_changes_between_install_and_import_is_an_error(wheel: Path) -> None:
    fixes.install(reintroduce=[fix_of(RANK)])
    (wheel / "codegen.py").write_text("pass\n")
    with pytest.raises(FuzzerError, match=r"codegen:Kernel\.rank of toywheel .*does not match.*found 0 times"):
        load()


def test_two_edits_of_one_place_are_an_error_at_once(wheel: Path) -> None:
    other = fix_of(edit("total += count if count else 1", "total += 1"), slug="other")
    with pytest.raises(FuzzerError, match="does not match"):
        fixes.install(reintroduce=[fix_of(RANK), other])


def test_an_already_imported_module_is_an_error(wheel: Path) -> None:
    load()
    with pytest.raises(FuzzerError, match=r"toywheel\.codegen is imported already"):
        fixes.install(reintroduce=[fix_of(RANK)])


def test_nothing_to_reintroduce_and_nothing_to_mend_are_errors(wheel: Path) -> None:
    with pytest.raises(FuzzerError, match="has this fix already"):
        fixes.install(fix=[fix_of(RANK)])
    mirrored = edit("total += count", "total += count if count else 1")
    with pytest.raises(FuzzerError, match="has this defect already"):
        fixes.install(reintroduce=[fix_of(mirrored)])


def test_a_second_install_is_an_error(wheel: Path) -> None:
    fixes.install(reintroduce=[fix_of(RANK)])
    with pytest.raises(FuzzerError, match="installed already"):
        fixes.install(reintroduce=[fix_of(edit("ROUNDS = 6", "ROUNDS = 1", function="Kernel"))])


def test_a_form_with_too_many_lines_is_refused_because_later_lines_would_move(wheel: Path) -> None:
    grown = edit("b = a + 1", "if a:\n    b = 1\nelse:\n    b = 2", function="twice")
    with pytest.raises(FuzzerError, match="more lines"):
        fixes.install(reintroduce=[fix_of(grown)])


def test_another_finder_that_wraps_the_loader_still_loads_the_edited_module(wheel: Path) -> None:
    class Wrapping:
        """Keeps the loader's own method, as an after-import hook does."""

        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> object:
            if name != "toywheel.codegen":
                return None
            sys.meta_path.remove(Wrapping)  # type: ignore[arg-type]  # a class with a static find_spec is a finder
            spec = importlib.util.find_spec(name)
            assert spec is not None
            assert spec.loader is not None
            execute: Callable[[ModuleType], None] = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                module.__dict__["WRAPPED"] = True

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]  # this loader loads one module
            return spec

    for order in ("before", "after"):
        if order == "before":
            sys.meta_path.insert(0, Wrapping)  # type: ignore[arg-type]  # as above
        fixes.install(reintroduce=[fix_of(RANK)])
        if order == "after":
            sys.meta_path.insert(0, Wrapping)  # type: ignore[arg-type]  # as above
        module = load()
        assert (module.WRAPPED, module.Kernel().rank([0, 2])) == (True, 8), order
        fixes.uninstall()
        forget()


def test_a_fix_is_found_by_slug_and_by_path(tmp_path: Path) -> None:
    assert fixes.find("downcast_inout").slug == "downcast_inout"
    path = tmp_path / "mine.py"
    path.write_text(
        "from fuzzer.fixes import BackendFix, Edit\n"
        "from fuzzer.verdict import Kind\n"
        "FIX = BackendFix(slug='mine', title='', reference='', kind=Kind.CRASH, symptom='', summary='', trigger='',\n"
        "                 edits=(Edit(module='torch_npu', fixed='a', defective='b'),))\n"
    )
    assert fixes.find(str(path)).slug == "mine"


def test_an_unknown_slug_lists_the_near_ones() -> None:
    with pytest.raises(FuzzerError, match=r"did you mean.*downcast_inout"):
        fixes.find("downcast_in_out")


@pytest.mark.parametrize("text", ["", "FIX = 3", "raise KeyError('x')"])
def test_a_file_without_a_fix_is_a_clear_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.py"
    path.write_text(text)
    with pytest.raises(FuzzerError, match=r"other\.py does not define a backend fix"):
        fixes.find(str(path))
    with pytest.raises(FuzzerError, match="no such file"):
        fixes.find(str(tmp_path / "missing.py"))


def test_fixes_are_told_apart_by_slug_and_describe_themselves() -> None:
    assert len({fix.slug for fix in FIXES}) == len(FIXES)
    for fix in FIXES:
        for text in (fix.title, fix.reference, fix.symptom, fix.summary, fix.trigger):
            assert text.strip(), fix.slug


@pytest.mark.sim
def test_every_edit_applies_to_the_installed_wheel_and_no_file_of_it_changes() -> None:
    script = (
        "from backend_fixes import FIXES\n"
        "from fuzzer import fixes\n"
        "import sys\n"
        "for fix in FIXES:\n"
        "    if fixes.state(fix) is fixes.State.PRESENT: fixes.install(reintroduce=[fix])\n"
        "    else: fixes.install(fix=[fix])\n"
        "    fixes.uninstall()\n"
        "assert 'torch' not in sys.modules and 'torch_npu' not in sys.modules\n"
    )
    paths = {path for fix in FIXES for one in fix.edits if (path := fixes.locate(one.module)) is not None}
    before = {path: hashlib.sha256(path.read_bytes()).digest() for path in paths}
    assert len(before) > 1
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[1])
    assert {path: hashlib.sha256(path.read_bytes()).digest() for path in paths} == before


NAMES = st.sampled_from(["a", "b", "f(a)", "a + b", "(\n  a,\n  b,\n)", "[x for x in a]", "not a", "a if b else a"])


@given(old=NAMES, new=NAMES, before=st.integers(0, 3))
def test_an_edit_changes_its_own_lines_only(old: str, new: str, before: int) -> None:
    text = "x = 1\n" * before + f"def g(a, b):\n    y = h({old})\n    return y\n\n\nz = 3\n"
    first, second = source_edit.fragments(f"h({old})", f"h({new})")
    edited = source_edit.Source(source_edit.Source(text.encode()).replace("g", first, second))
    assert edited.count("g", second) == 1
    assert edited.data.count(b"\n") == text.count("\n")
    assert edited.data.decode().splitlines()[-4:] == text.splitlines()[-4:]
