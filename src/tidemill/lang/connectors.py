"""Connector calls: the sources and sinks of streams and queries, with their arguments."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sqlglot import Token, TokenType

from tidemill.lang.statements import ArgumentSpans, ConnectorCall, Environment, Name
from tidemill.lang.tokens import token_span

if TYPE_CHECKING:
    from tidemill.errors import Span
    from tidemill.lang.cursor import Cursor
    from tidemill.lang.statements import Argument

__all__ = ["read_connector"]


def read_connector(cursor: Cursor) -> ConnectorCall:
    """Read ``name(value, …, name => value, …)``."""
    name = cursor.name("the name of a connector")
    cursor.expect("(")
    positional: list[Argument] = []
    named: dict[str, Argument] = {}
    places: list[Span] = []
    names: dict[str, Span] = {}
    values: dict[str, Span] = {}
    while not cursor.accept(")"):
        if positional or named:
            cursor.expect(",")
        start = cursor.index
        key = _read_key(cursor)
        first = cursor.index
        value = _read_value(cursor)
        place = cursor.span_from(first)
        if key is None and named:
            cursor.fail(
                "an argument without a name stands behind one with a name",
                span=cursor.span_from(start),
                hint="write name => value",
            )
        if key is None:
            positional.append(value)
            places.append(place)
        elif key.text in named:
            cursor.fail(f'option "{key.text}" is given twice', span=key.span)
        else:
            named[key.text] = value
            values[key.text] = place
            names[key.text] = place if key.span is None else key.span
    spans = ArgumentSpans(tuple(places), names, values)
    return ConnectorCall(name, tuple(positional), tuple(named.items()), spans)


def _read_key(cursor: Cursor) -> Name | None:
    arrow = cursor.peek(1)
    if arrow is None or arrow.token_type is not TokenType.FARROW:
        return None
    name = cursor.name("the name of an argument")
    cursor.expect("=>")
    return name


def _read_value(cursor: Cursor) -> Argument:
    if literal := cursor.accept_type(TokenType.STRING):
        return literal.text
    if cursor.accept("TRUE"):
        return True
    if cursor.accept("FALSE"):
        return False
    if cursor.accept("ENV", "("):
        return _read_environment(cursor)
    start = cursor.index
    sign = -1 if cursor.accept("-") else 1
    if number := cursor.accept_type(TokenType.NUMBER):
        return sign * _number(cursor, number)
    cursor.index = start
    return cursor.fail_expected("a string, a number, TRUE, FALSE or env('NAME')")


def _read_environment(cursor: Cursor) -> Environment:
    """Read ``'NAME')``, what stands behind ``env(``."""
    name = cursor.accept_type(TokenType.STRING)
    if name is None:
        cursor.fail_expected(
            "the name of an environment variable, a string", hint="write env('NAME')"
        )
    if not name.text or "=" in name.text or "\0" in name.text:
        cursor.fail(
            "an environment variable cannot have this name",
            span=token_span(name),
            hint="write env('NAME')",
        )
    cursor.expect(")", hint="write env('NAME')")
    return Environment(name.text)


def _number(cursor: Cursor, token: Token) -> int | float:
    if token.text.isdecimal():
        try:
            return int(token.text)
        except ValueError:  # Python refuses to read a number of several thousand digits
            cursor.fail("the number is too long", span=token_span(token))
    value = float(token.text)
    if math.isinf(value):
        cursor.fail("the number is too large", span=token_span(token))
    return value
