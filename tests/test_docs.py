"""Every example runs: the doctests of src, and what README.md and docs/ show.

In a Markdown file each fenced block says what it is:

    python   is run, as a doctest if it has prompts; the blocks of a file share their names
    sql      is parsed as statements of the language
    text     is not run

Another word, or none, is an error: nothing is left out by accident. A page with the line

    <!-- examples begin with: other.md -->

has the names that the blocks of the other page bind; the path is relative to the page.
"""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

# What people are shown is nothing that they would be warned of.
pytestmark = pytest.mark.filterwarnings("error::tidemill.errors.TidemillWarning")

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
MODULES = sorted((SOURCE / "tidemill").rglob("*.py"))
ELSEWHERE = {"survive_a_kill.py": "spark/test_tutorial.py"}
"""Example programs that take arguments, and the tests that run them."""
EXAMPLES = [p for p in sorted((ROOT / "examples").glob("*.py")) if p.name not in ELSEWHERE]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BEGINS_WITH = re.compile(r"^<!-- examples begin with: (\S+) -->$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, and the line it starts at, counted from 1."""

    language: str
    text: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a Markdown page."""
    lines = iter(enumerate(page.splitlines(), start=1))
    for _, line in lines:
        opened = re.fullmatch(r"( *)(`{3,}|~{3,}) *(.*)", line)
        if not opened:
            continue
        indent, fence, language = opened.groups()
        body: list[str] = []
        for number, inner in lines:
            if inner.strip() == fence:
                text = "\n".join(part.removeprefix(indent) for part in body) + "\n"
                yield Block(language.strip(), text, number - len(body))
                break
            body.append(inner)
        else:
            pytest.fail(f"a block that starts with {line.strip()} has no end")


def run_page(path: Path) -> None:
    """Run the examples of a Markdown file in order, after those that it begins with."""
    names: dict[str, object] = {"__name__": "__main__"}
    page = path.read_text(encoding="utf-8")
    for other in BEGINS_WITH.findall(page):
        _run_blocks(path.parent / other, names)
    _run_blocks(path, names)


def _run_blocks(path: Path, names: dict[str, object]) -> None:
    for block in blocks(path.read_text(encoding="utf-8")):
        match block.language:
            case "python":
                _run_python(block, path, names)
            case "sql":
                _parse_sql(block)
            case "text":
                pass
            case other:
                pytest.fail(
                    f"{path}:{block.line}: a block is python, sql or text, not {other or 'nothing'}"
                )


def _run_python(block: Block, path: Path, names: dict[str, object]) -> None:
    if not re.search(r"^>>> ", block.text, re.MULTILINE):
        # Blank lines in front, so that a traceback shows the line of the page.
        code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
        exec(code, names)  # noqa: S102 — running the examples is what this file is for
        return
    test = doctest.DocTestParser().get_doctest(
        block.text, {}, f"{path.name}:{block.line}", str(path), block.line - 1
    )
    test.globs = names  # the parser would take a copy, and later blocks not see what this one binds
    _run_doctest(test)


def _run_doctest(test: doctest.DocTest) -> None:
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=report.append, clear_globs=False)
    if report:
        pytest.fail("".join(report), pytrace=False)


def _parse_sql(block: Block) -> None:
    lang = importlib.import_module("tidemill.lang")
    lang.parse(block.text)


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(SOURCE)))
def test_the_examples_of_a_module_are_true(module: Path) -> None:
    parts = module.relative_to(SOURCE).with_suffix("").parts
    name = ".".join(part for part in parts if part != "__init__")
    for test in doctest.DocTestFinder().find(importlib.import_module(name)):
        _run_doctest(test)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.name)
def test_an_example_program_runs(example: Path) -> None:
    done = subprocess.run(  # noqa: S603 — our own program
        [sys.executable, str(example)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout, "an example shows something"


@pytest.mark.parametrize("name", ELSEWHERE)
def test_the_other_example_programs_have_tests(name: str) -> None:
    assert (ROOT / "examples" / name).exists()
    assert name in (ROOT / "tests" / ELSEWHERE[name]).read_text(encoding="utf-8")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.md"


def test_blocks_of_one_page_share_their_names(page: Path) -> None:
    page.write_text(
        "```python\nx = 1\n```\n```python\n>>> y = x + 1\n```\n```python\nassert y == 2\n```\n",
        encoding="utf-8",
    )
    run_page(page)


def test_a_page_can_begin_with_the_examples_of_another(page: Path) -> None:
    page.with_name("first.md").write_text("```python\nx = 1\n```\n", encoding="utf-8")
    page.write_text(
        "<!-- examples begin with: first.md -->\n\n```python\nassert x == 1\n```\n",
        encoding="utf-8",
    )
    run_page(page)


def test_a_block_that_raises_fails(page: Path) -> None:
    page.write_text("text\n\n```python\nassert 1 == 2\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError) as caught:
        run_page(page)
    assert caught.traceback[-1].lineno == 3, "the traceback shows the line of the page, from 0"


def test_a_prompt_with_another_answer_fails(page: Path) -> None:
    page.write_text("```python\n>>> 1 + 1\n3\n```\n", encoding="utf-8")
    with pytest.raises(pytest.fail.Exception, match=r'page.md", line 2'):
        run_page(page)


def test_a_statement_that_does_not_parse_fails(page: Path) -> None:
    page.write_text("```sql\nSELECT FROM WHERE\n```\n", encoding="utf-8")
    errors = importlib.import_module("tidemill.errors")
    with pytest.raises(errors.ParseError):
        run_page(page)


def test_an_indented_block_runs(page: Path) -> None:
    page.write_text(
        "1. item\n\n   ```python\n   if True:\n       1 / 0\n   ```\n", encoding="utf-8"
    )
    with pytest.raises(ZeroDivisionError):
        run_page(page)


def test_a_text_block_does_not_run(page: Path) -> None:
    page.write_text("```text\n1 / 0\n```\n", encoding="utf-8")
    run_page(page)


@pytest.mark.parametrize("language", ["", "bash", "Python"])
def test_a_block_of_another_language_fails(page: Path, language: str) -> None:
    page.write_text(f"```{language}\nx\n```\n", encoding="utf-8")
    with pytest.raises(pytest.fail.Exception, match="python, sql or text"):
        run_page(page)


def test_a_block_without_an_end_fails(page: Path) -> None:
    page.write_text("```python\nx = 1\n", encoding="utf-8")
    with pytest.raises(pytest.fail.Exception, match="has no end"):
        run_page(page)
