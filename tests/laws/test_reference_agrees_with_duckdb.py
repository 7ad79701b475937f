"""Whole queries mean what DuckDB says they mean.

The reference evaluates the plan that the binder made of a text; the oracle (``tests/oracle``) puts
what the windows contain into DuckDB and runs the same text there. Both must give the same bag of
typed rows at every instant.

There are 320 generated queries by default, 40 of each of 8 families, and twenty times as many with
``pytest --more``; and the traps, which are written down.
"""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.agreement import assert_agree
from oracle.queries import FAMILIES, queries
from oracle.templates import AGGREGATES, APPROXIMATE, TEMPLATES
from oracle.traps import INPUTS, TRAPS
from oracle.world import DEFINITIONS, inputs
from tidemill.catalog.functions import function_list

QUERIES = 40
"""How many queries of each family are drawn in the default profile."""

MORE = max(1, settings().max_examples // settings.get_profile("ci").max_examples)

# With elements at the instants 0 to 8: windows fill, move on, and run empty.
INSTANTS = ((2, 4, 6, 9), (1, 3, 5, 8), (0, 4, 7, 10))


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=QUERIES * MORE)
@given(data=st.data())
def test_a_query_means_what_it_means_in_duckdb(family: str, data: st.DataObject) -> None:
    sql = data.draw(queries(family), label="query")
    content = data.draw(inputs(), label="inputs")
    instants = data.draw(st.sampled_from(INSTANTS), label="instants")
    assert_agree(sql, content, instants, DEFINITIONS)


def test_there_are_as_many_queries_as_promised() -> None:
    assert QUERIES * len(FAMILIES) == 320
    assert __doc__ is not None
    assert f"{QUERIES * len(FAMILIES)} generated queries" in __doc__


@pytest.mark.parametrize("name", TRAPS)
def test_a_trap(name: str) -> None:
    assert_agree(TRAPS[name], INPUTS, (0, 1, 2, 3, 4, 5, 7), DEFINITIONS)


WRITTEN = {
    **{sign: f" {sign} " for sign in ("+", "-", "*", "/", "//", "%", "||")},
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), "{sign}"),
    "neg": "(- ",
    "is_distinct": "IS DISTINCT FROM",
    "is_not_distinct": "IS NOT DISTINCT FROM",
    "is_null": "IS NULL",
    "is_true": "IS TRUE",
    "is_false": "IS NOT FALSE",
    "not": "(NOT ",
    **{word: f" {word.upper()} " for word in ("and", "or", "in", "like", "ilike")},
}
"""How an operator is found in a template."""


def test_every_function_is_drawn() -> None:
    templates = [*APPROXIMATE, *chain(*TEMPLATES.values(), *AGGREGATES.values())]
    listed = [name for function in function_list() for name in (function.name, *function.aliases)]
    missing = [
        name
        for name in listed
        if not any(WRITTEN.get(name, f"{name.upper()}(") in template for template in templates)
    ]
    assert missing == []
