"""AS OF: the end of a query that is asked once, and QUERY name in its FROM.

Neither OF nor QUERY is a reserved word. ``AS OF`` is an alias, unless what follows it can only be
an instant, or is meant to be one; ``QUERY`` is the name of a stream, unless a name follows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from tidemill.lang.cursor import is_name, reads_as
from tidemill.lang.instants import INSTANT_HINT, begins_instant, read_instant

if TYPE_CHECKING:
    from collections.abc import Collection

    from tidemill.lang.cursor import Cursor
    from tidemill.lang.parser import Parser
    from tidemill.lang.statements import Instant

__all__ = ["QueryAnswer", "at_as_of", "at_query_answer", "read_as_of", "read_query_answer"]


class QueryAnswer(exp.Expression, exp.DerivedTable):
    """QUERY name: a FROM item, the answer of a registered query at the instant of AS OF.

    Args:
        this: The Identifier of the query.
        alias: The TableAlias, if there is one.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": False}

    @property
    def name(self) -> str:
        """The name of the query."""
        name: str = self.this.name
        return name


def at_as_of(cursor: Cursor, after: Collection[str] = ()) -> bool:
    """Whether ``AS OF`` comes next, and is no alias.

    Args:
        cursor: Where to look.
        after: Words of the statement that may follow an alias.
    """
    if not cursor.at("AS", "OF"):
        return False
    following = cursor.peek(2)
    if any(reads_as(following, word) for word in ("OFFSET", *after)):
        return False
    return begins_instant(cursor, 2) or is_name(following)


def read_as_of(cursor: Cursor) -> Instant | None:
    """Read ``AS OF NOW``, which is ``None``, or ``AS OF instant``, to the end of the statement."""
    cursor.expect("AS", "OF")
    instant = None
    if not cursor.accept("NOW"):
        if not begins_instant(cursor):
            cursor.fail_expected("an instant or NOW", hint=INSTANT_HINT)
        instant = read_instant(cursor)
    if cursor.current is not None:
        cursor.fail(
            f"unexpected {cursor.found()}",
            hint="AS OF stands at the end, after ORDER BY and LIMIT",
        )
    return instant


def at_query_answer(parser: Parser) -> bool:
    """Whether ``QUERY name`` comes next, and not a stream that is called so."""
    cursor = parser.cursor
    following = cursor.peek(1)
    is_alias = not parser.ends_at(parser.position + 1) and not reads_as(following, "OFFSET")
    return cursor.at("QUERY") and is_alias and is_name(following)


def read_query_answer(parser: Parser) -> QueryAnswer:
    """Read ``QUERY name``."""
    start = parser.current
    parser.read(lambda cursor: cursor.expect("QUERY"))
    return parser.mark(QueryAnswer(this=parser.identifier("the name of a query")), start)
