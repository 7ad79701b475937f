"""The import law: imports go downward only, never sideways, and libraries have their places.

The order is that of the layers below, under TYPE_CHECKING as well. ``connectors`` and ``catalog``
stand above ``lang``: they check and keep what ``lang.statements`` says. The two runtimes stand side
by side above what they share. Both tables are exact: an entry that nothing uses is an error.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
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
    ("calibration",),
    ("connecting",),
    ("planning",),
    ("session",),
    ("control",),
    ("runtime/local", "runtime/spark"),
    ("runtime",),
    ("history",),
    ("engine",),
    ("migration", "provenance"),
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

SIDEWAYS = {
    ("runtime/spark", "runtime/local"): {"read_relation", "is_there", "check_frame", "kept_place"}
}
"""What one layer takes from another beside it: frames in memory, which both runtimes read."""

LIBRARIES = {
    "datasketches": {"runtime/measuring"},
    "duckdb": {"demo/checks"},
    "numpy": {"engine", "physical", "provenance", "runtime/measuring", "runtime/reading"},
    "pandas": {"runtime/frames", "runtime/spark/worker"},
    "polars": {
        *(
            "calibration",
            "cli",
            "connecting",
            "connectors",
            "control",
            "demo",
            "engine",
            "history",
            "model",
        ),
        *("physical", "provenance", "runtime", "session"),
    },
    "py4j": {"runtime/spark/driver", "runtime/spark/io"},
    "pyarrow": {
        *("physical/state", "provenance/encoding", "runtime/files", "runtime/reading"),
        "runtime/spark",
    },
    "pyspark": {"runtime/spark"},
    "rich": {"cli"},
    "sqlglot": {"binder", "catalog/entries", "lang"},
    "typer": {"cli"},
}
"""Each library with the packages and modules that may import it; others may not."""

COMES_WITH = {"py4j": "pyspark"}
NOT_IMPORTED = {"protobuf"}
"""What Spark needs and we install for it."""
OPTIONAL = {"duckdb"}
"""What is used if it is there."""


def imported(source: str) -> Iterator[str]:
    """Every module a text imports, with the names it takes from it, as dotted paths."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module, names, level):
                prefix = "." * level + (module or "")
                yield from (f"{prefix}.{alias.name}" for alias in names)
            case ast.Call(func, [ast.Constant(str(module))]) if "import_module" in ast.dump(func):
                yield module
            case _:
                pass


def layer_of(path: str) -> str | None:
    """The layer of a module or package, given as a path below the root."""
    parts = path.split("/")
    found = ("/".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((name for name in found if name in HEIGHT), None)


def violations(module: str, source: str) -> list[str]:
    """The imports of a module that the law forbids; the module is a path below the root."""
    return [path for path in imported(source) if not _allowed(module, path)]


def _allowed(module: str, path: str) -> bool:
    first, *rest = path.split(".")
    if first == "":
        return False  # relative imports hide where they go
    if first != "tidemill":
        return first in sys.stdlib_module_names or _has_place(module, first)
    own, other = layer_of(module), layer_of("/".join(rest))
    assert own is not None, f"{module} is in no layer"
    if other is None:
        return False
    return own == other or HEIGHT[other] < HEIGHT[own] or rest[-1] in SIDEWAYS.get((own, other), ())


def _has_place(module: str, library: str) -> bool:
    return any(covers(place, module) for place in LIBRARIES.get(library, ()))


def covers(place: str, module: str) -> bool:
    """Whether a module is a package or module, or in it."""
    return module == place or module.startswith(f"{place}/")


def path_of(module: Path) -> str:
    return str(module.relative_to(ROOT).with_suffix("")).removesuffix("/__init__")


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(ROOT)))
def test_a_module_imports_only_what_it_may(module: Path) -> None:
    assert violations(path_of(module), module.read_text(encoding="utf-8")) == []


def test_every_layer_is_there() -> None:
    paths = {path_of(module) for module in MODULES}
    assert [name for name in HEIGHT if not any(covers(name, path) for path in paths)] == []


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_place_of_a_library_uses_it(library: str) -> None:
    users = [
        path_of(module)
        for module in MODULES
        if any(p.split(".")[0] == library for p in imported(module.read_text(encoding="utf-8")))
    ]
    places = LIBRARIES[library]
    assert [place for place in places if not any(covers(place, user) for user in users)] == []
    assert [p for p in places if any(p != other and covers(other, p) for other in places)] == []


def test_libraries_are_those_that_are_installed_with_the_package() -> None:
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    needed = {re.split(r"[^\w-]", line)[0] for line in project["project"]["dependencies"]}
    known = {COMES_WITH.get(name, name) for name in LIBRARIES} - OPTIONAL
    assert known | NOT_IMPORTED == needed


@pytest.mark.parametrize("pair", SIDEWAYS)
def test_every_name_that_goes_sideways_is_used(pair: tuple[str, str]) -> None:
    own, other = pair
    taken = {
        path.rsplit(".", 1)[1]
        for module in MODULES
        if layer_of(path_of(module)) == own
        for path in imported(module.read_text(encoding="utf-8"))
        if path.startswith(f"tidemill.{other.replace('/', '.')}.")
    }
    assert taken == SIDEWAYS[pair]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("model/time", "from tidemill.algebra.plan import Plan"),
        ("model/time", "import tidemill.algebra.plan"),
        ("lang/parse", "from tidemill import algebra"),
        ("algebra/plan", "from tidemill.lang.statements import Statement"),
        ("physical/plan", "from tidemill.binder import bind"),
        ("errors", "if TYPE_CHECKING:\n    from tidemill.model.types import DataType"),
        ("algebra/plan", "def late():\n    from tidemill.catalog import functions"),
        ("catalog/entries", "from . import functions"),
        ("algebra/plan", "import tidemill"),
        ("runtime/sinks", "from tidemill.runtime.spark.driver.job import SparkJob"),
        ("runtime/local/job", "from tidemill.runtime.spark.worker.wire import Message"),
        ("runtime/spark/driver/job", "from tidemill.runtime.local.job import LocalJob"),
        ("runtime/sinks", "import pyspark"),
        ("engine/engine", "from py4j.java_gateway import JavaGateway"),
        ("optimizer/planning", "from sqlglot import exp"),
        ("lang/parse", "import polars as pl"),
        ("algebra/plan", "import pyarrow as pa"),
        ("session", "from rich.table import Table"),
        ("cli/run", "import duckdb"),
        ("engine/engine", "importlib.import_module('duckdb')"),
    ],
)
def test_an_import_that_is_not_allowed_is_found(module: str, source: str) -> None:
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("algebra/plan", "from tidemill.algebra.expr import Expr"),
        ("algebra/plan", "from tidemill.model.types import BIGINT"),
        ("catalog/entries", "from tidemill.lang.statements import Name"),
        ("lang/parse", "import sqlglot"),
        ("lang/parse", "import re"),
        ("runtime/spark/driver/job", "from pyspark.sql import SparkSession"),
        ("runtime/spark/driver/job", "from tidemill.runtime.sinks import Sink"),
        ("__init__", "from tidemill.session import Session"),
    ],
)
def test_an_import_downward_is_allowed(module: str, source: str) -> None:
    assert violations(module, source) == []
