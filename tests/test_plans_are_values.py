"""What an operator is, is asked of its traits; what a file holds is data, never code."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidemill.physical import interval, signed

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1] / "src" / "tidemill"
ESTIMATES = ROOT / "optimizer" / "estimates"
"""What an operator costs is no promise of it: each class has its formula, none is forgotten."""
OUTSIDE = sorted(
    p
    for p in ROOT.rglob("*.py")
    if not p.is_relative_to(ROOT / "physical") and not p.is_relative_to(ESTIMATES)
)
OPERATORS = frozenset(
    name
    for module in (interval, signed)
    for name in module.__all__
    if hasattr(getattr(module, name), "on_batch")
)
PLACES = ("tidemill.physical.interval", "tidemill.physical.signed", "tidemill.physical.operators")


def questions(source: str) -> Iterator[str]:
    """Where a text asks an operator for its class: by isinstance, by type, or by a pattern."""
    tree = ast.parse(source)
    if "tidemill.physical" not in source:
        return  # what it calls an operator is a logical one
    modules = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "tidemill.physical"
        for alias in node.names
        if alias.name in ("interval", "signed")
    }
    classes = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PLACES)
        for alias in node.names
        if alias.name in OPERATORS
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("isinstance" | "issubclass"), [_, kinds]):
                named = ast.walk(kinds)
            case ast.MatchClass(kind):
                named = ast.walk(kind)
            case ast.Call(ast.Name("type"), [ast.Attribute(attr="operator")]):
                yield ast.unparse(node)
                continue
            case ast.Call(ast.Name("type"), [ast.Name("operator")]):
                yield ast.unparse(node)
                continue
            case _:
                continue
        for part in named:
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                if part.value.id in modules and part.attr in OPERATORS:
                    yield ast.unparse(node)
            elif isinstance(part, ast.Name) and part.id in classes:
                yield ast.unparse(node)


@pytest.mark.parametrize("module", OUTSIDE, ids=lambda p: str(p.relative_to(ROOT)))
def test_nobody_outside_of_physical_asks_an_operator_for_its_class(module: Path) -> None:
    assert list(questions(module.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "question",
    [
        "isinstance(o, interval.Join)",
        "isinstance(o, interval.Join | signed.Join)",
        "type(operator).__name__",
        "type(part.operator) is X",
        "isinstance(o, Aggregate)",
        "match o:\n    case Apply(interval.Filter(), below): pass",
    ],
)
def test_such_a_question_is_found(question: str) -> None:
    imports = (
        "from tidemill.physical import interval, signed\n"
        "from tidemill.physical.operators.aggregate.aggregate import Aggregate\n"
    )
    assert len(list(questions(imports + question))) >= 1


LOADING = ("pickle.load", "cloudpickle", "marshal.load", "dill", "shelve")


def test_only_the_functions_of_spark_s_tasks_are_unpickled() -> None:
    found = {
        (str(path.relative_to(ROOT)), line.strip())
        for path in ROOT.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if any(word in line for word in LOADING) and not line.strip().startswith("#")
    }
    loading = {(path, line.partition("  #")[0]) for path, line in found}
    assert loading == {("runtime/spark/worker/stepping.py", "task = pickle.loads(packed)")}
