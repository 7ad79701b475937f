"""The catalog: immutable, one name for one thing, nothing dropped that is still used."""

from __future__ import annotations

import pytest
from sqlglot import exp

from tidemill.algebra.plan import Source
from tidemill.catalog.catalog import Catalog
from tidemill.catalog.entries import FunctionEntry, QueryEntry, StreamEntry, object_use
from tidemill.errors import BindError
from tidemill.lang.statements import ConnectorCall, Name, ObjectKind
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT

SCHEMA = Schema((Field("x", BIGINT),))


def stream(name: str) -> StreamEntry:
    return StreamEntry(name, SCHEMA, ConnectorCall(Name("memory")))


def query(name: str, *uses: str) -> QueryEntry:
    return QueryEntry(
        name, Source("s", SCHEMA), "SELECT * FROM s", frozenset(map(object_use, uses))
    )


def test_adding_leaves_the_old_catalog_as_it_was() -> None:
    old = Catalog()
    new = old.added(stream("s"))
    assert old.find("s") is None
    assert new.find("S") == stream("s")


def test_a_name_is_taken_whatever_its_case_and_kind() -> None:
    with pytest.raises(BindError, match='there is a stream "s" already'):
        Catalog().added(stream("s")).added(query("S"))


def test_what_is_used_cannot_be_dropped_until_its_users_are_gone() -> None:
    catalog = Catalog().added(stream("s")).added(query("q", "s"))
    with pytest.raises(BindError, match='stream "s" is used by query "q"'):
        catalog.dropped(Name("S"), ObjectKind.STREAM)
    without = catalog.dropped(Name("q"), ObjectKind.QUERY).dropped(Name("s"), ObjectKind.STREAM)
    assert not without.objects


def test_unnamed_queries_get_names_nobody_has() -> None:
    catalog = Catalog()
    for expected in ("query_1", "query_2"):
        name = catalog.unused_query_name()
        assert name == expected
        catalog = catalog.added(query(name))
    catalog = catalog.dropped(Name("query_1"), ObjectKind.QUERY)
    assert catalog.unused_query_name() not in catalog.objects


def test_a_function_may_have_the_name_of_a_stream() -> None:
    body = exp.column("x")
    function = FunctionEntry("s", SCHEMA.fields, body, SCHEMA.fields[0], "", frozenset())
    catalog = Catalog().added(stream("s")).added(function).added(stream("a"))
    assert [entry.name for entry in catalog.entries(ObjectKind.STREAM)] == ["a", "s"]
    assert list(catalog.entries(ObjectKind.FUNCTION)) == [function]
