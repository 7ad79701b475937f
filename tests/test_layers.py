"""The import law: imports go downward only, and never sideways.

The order is that of the layers below, under TYPE_CHECKING as well. ``connectors`` and ``catalog``
stand above ``lang``: they check and keep what ``lang.statements`` says. Only
``runtime/spark`` knows pyspark.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1] / "src" / "tidemill"
MODULES = sorted(ROOT.rglob("*.py"))

LAYERS = (
    ("__init__", "__main__"),
    ("cli",),
    ("demo",),
    ("connecting",),
    ("planning",),
    ("session",),
    ("runtime",),
    ("engine",),
    ("optimizer",),
    ("physical", "binder"),
    ("catalog",),
    ("connectors",),
    ("lang", "algebra"),
    ("model",),
    ("errors",),
    ("masking",),
)
HEIGHT = {name: -depth for depth, names in enumerate(LAYERS) for name in names}


def imported(source: str) -> Iterator[str]:
    """Every module a text imports, with the names it takes from it, as dotted paths."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module, names, level):
                prefix = "." * level + (module or "")
                yield from (f"{prefix}.{alias.name}" for alias in names)
            case _:
                pass


def violations(package: str, source: str) -> list[str]:
    """The imports of a module in ``package`` that the law forbids."""
    return [path for path in imported(source) if not _allowed(package, path)]


def _allowed(package: str, path: str) -> bool:
    first, *rest = path.split(".")
    if first == "":
        return False  # relative imports hide where they go
    if first != "tidemill":
        return True
    return bool(rest) and (rest[0] == package or HEIGHT[rest[0]] < HEIGHT[package])


def package_of(module: Path) -> str:
    return module.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(ROOT)))
def test_a_module_imports_only_from_lower_layers(module: Path) -> None:
    assert violations(package_of(module), module.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(ROOT)))
def test_only_the_spark_runtime_imports_pyspark(module: Path) -> None:
    paths = imported(module.read_text(encoding="utf-8"))
    uses_spark = any(path.split(".")[0] == "pyspark" for path in paths)
    assert not uses_spark or module.is_relative_to(ROOT / "runtime" / "spark")


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("model", "from tidemill.algebra.plan import Plan"),
        ("model", "import tidemill.algebra.plan"),
        ("lang", "from tidemill import algebra"),
        ("algebra", "from tidemill.lang.statements import Statement"),
        ("physical", "from tidemill.binder import bind"),
        ("errors", "if TYPE_CHECKING:\n    from tidemill.model.types import DataType"),
        ("algebra", "def late():\n    from tidemill.catalog import functions"),
        ("catalog", "from . import functions"),
        ("algebra", "import tidemill"),
    ],
)
def test_an_import_upward_or_sideways_is_found(package: str, source: str) -> None:
    assert len(violations(package, source)) == 1


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("algebra", "from tidemill.algebra.expr import Expr"),
        ("algebra", "from tidemill.model.types import BIGINT"),
        ("catalog", "from tidemill.lang.statements import Name"),
        ("lang", "import sqlglot"),
        ("__init__", "from tidemill.session import Session"),
    ],
)
def test_an_import_downward_is_allowed(package: str, source: str) -> None:
    assert violations(package, source) == []
