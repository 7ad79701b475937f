"""Windows and stream operators: the syntax nodes that SQL does not have.

bid [RANGE 10 MINUTES SLIDE 1 MINUTE] AS b      Windowed(Table bid, WindowClause, alias b)
ISTREAM(SELECT …)                               StreamOperator(ISTREAM, Select)
WSTREAM[ROWS 100](SELECT …)                     StreamOperator(WSTREAM, Select, WindowClause)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from sqlglot import TokenType, exp

from tidemill.lang.durations import read_duration
from tidemill.lang.spans import record, record_value, value_span
from tidemill.lang.tokens import token_span

if TYPE_CHECKING:
    from sqlglot import Token

    from tidemill.lang.cursor import Cursor
    from tidemill.lang.statements import Duration

__all__ = [
    "StreamOperator",
    "WindowClause",
    "Windowed",
    "at_window",
    "read_output_window",
    "read_window",
]

# Whether results leave with the rows of the window; EXTERNAL says nothing new and is not kept.
_KINDS: Final = ("INTERNAL", "EXTERNAL")

# Windows that do not slide, and why.
_STILL: Final = {
    "NOW": "the present instant moves with time",
    "SESSION": "a session goes on with every row; leave SLIDE out",
}


class WindowClause(exp.Expression):
    """What a window keeps.

    Args:
        frame: ``"RANGE"``, ``"ROWS"``, ``"SESSION"`` or ``"NOW"``.
        size: Microseconds or rows; None for UNBOUNDED and for NOW. Of a session it is the longest
            pause.
        slide: Microseconds or rows between two moves, or None if the window moves all the time.
        partition_by: The columns, each value of which has a window of its own.
        internal: Whether results stay when the rows that made them leave the window.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "frame": True,
        "size": False,
        "slide": False,
        "partition_by": False,
        "internal": False,
    }

    @property
    def frame(self) -> str:
        """``"RANGE"``, ``"ROWS"``, ``"SESSION"`` or ``"NOW"``."""
        frame: str = self.args["frame"]
        return frame

    @property
    def is_without_unit(self) -> bool:
        """Whether a time is written as a number alone, which counts microseconds."""
        return bool(self.meta_get(_WITHOUT_UNIT))

    @property
    def size(self) -> int | None:
        """Microseconds or rows; None for UNBOUNDED and for NOW."""
        size: int | None = self.args.get("size")
        return size

    @property
    def slide(self) -> int | None:
        """Microseconds or rows between two moves."""
        slide: int | None = self.args.get("slide")
        return slide

    @property
    def partition_by(self) -> list[exp.Column]:
        """The columns of PARTITION BY."""
        columns: list[exp.Column] | None = self.args.get("partition_by")
        return columns or []

    @property
    def internal(self) -> bool:
        """Whether results stay when the rows that made them leave the window."""
        return bool(self.args.get("internal"))


class Windowed(exp.Expression, exp.DerivedTable):
    """A FROM item with a window.

    Args:
        this: The Table, Subquery or StreamOperator under the window; it carries no alias.
        window: The WindowClause.
        alias: The TableAlias, if there is one.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "window": True, "alias": False}

    @property
    def window(self) -> WindowClause:
        """The window."""
        window: WindowClause = self.args["window"]
        return window

    @property
    def name(self) -> str:
        """The name of what is under the window, empty for a subquery."""
        name: str = self.this.name
        return name


class StreamOperator(exp.Expression, exp.DerivedTable):
    """ISTREAM, DSTREAM, RSTREAM or WSTREAM of a query, or of a name in FROM.

    Args:
        kind: ``"ISTREAM"``, ``"DSTREAM"``, ``"RSTREAM"`` or ``"WSTREAM"``.
        this: The query, or a Table.
        window: The WindowClause of WSTREAM.
        alias: The TableAlias, if it stands in FROM and has one.
        with_: The WITH before it, if it is a whole query.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "kind": True,
        "this": True,
        "window": False,
        "alias": False,
        "with_": False,
    }

    @property
    def kind(self) -> str:
        """``"ISTREAM"``, ``"DSTREAM"``, ``"RSTREAM"`` or ``"WSTREAM"``."""
        kind: str = self.args["kind"]
        return kind

    @property
    def window(self) -> WindowClause | None:
        """The window of WSTREAM."""
        window: WindowClause | None = self.args.get("window")
        return window

    @property
    def name(self) -> str:
        """The name of the operand, empty for a query."""
        return self.this.name if isinstance(self.this, exp.Table) else ""


def at_window(cursor: Cursor) -> bool:
    """Whether a window comes next."""
    return cursor.at("[") or cursor.at("WINDOW", "(")


def read_window(cursor: Cursor) -> WindowClause:
    """Read ``WINDOW(…)`` or ``[…]``."""
    start = cursor.index
    closing = "]" if cursor.accept("[") else ")"
    if closing == ")":
        cursor.expect("WINDOW", "(")
    partition_by = cursor.separated(_read_column) if cursor.accept("PARTITION BY") else ()
    node = _read_frame(cursor, closing)
    node.set("partition_by", list(partition_by) or None)
    if not cursor.accept(closing):
        _refuse_rest(cursor, node, closing)
    return record(node, cursor.span_from(start))


def read_output_window(cursor: Cursor) -> WindowClause:
    """Read the ``[…]`` of WSTREAM."""
    if not cursor.at("["):
        cursor.fail("WSTREAM needs a window", hint="write WSTREAM[ROWS 100](SELECT …)")
    window = read_window(cursor)
    if window.internal:
        cursor.fail(
            "an output window cannot be INTERNAL",
            span=value_span(window, "internal"),
            hint="it is there to let results go; to keep them all, write RANGE UNBOUNDED",
        )
    return window


def _read_frame(cursor: Cursor, closing: str) -> WindowClause:
    if cursor.at_any(_KINDS):
        _refuse_order(cursor)
    frame = cursor.choice(("RANGE", "ROWS", "SESSION", "NOW"))
    node = WindowClause(frame=frame)
    if frame == "NOW":
        return node
    if cursor.at("MIN") or cursor.at("MAX"):
        cursor.fail(
            f"{frame} with MIN and MAX is not supported yet", hint=f"write one size: {frame} 10"
        )
    if frame == "SESSION" and cursor.at("UNBOUNDED"):
        cursor.fail(
            "SESSION needs the length of a pause",
            hint="for everything since the beginning, write RANGE UNBOUNDED",
        )
    if not cursor.accept("UNBOUNDED"):
        _read_value(cursor, node, "size", closing)
    if frame != "SESSION" and cursor.accept("SLIDE"):
        _read_value(cursor, node, "slide", closing)
    start = cursor.index
    if cursor.accept("INTERNAL"):
        node.set("internal", True)
        record_value(node, "internal", cursor.span_from(start))
    else:
        cursor.accept("EXTERNAL")
    return node


_WITHOUT_UNIT = "without_unit"


def _read_value(cursor: Cursor, node: WindowClause, key: str, closing: str) -> None:
    if node.frame == "ROWS":
        start = cursor.index
        node.set(key, _read_rows(cursor, closing))
        record_value(node, key, cursor.span_from(start))
        return
    start = cursor.index
    duration: Duration = read_duration(cursor, stop=("SLIDE", *_KINDS))
    node.set(key, duration.microseconds)
    if cursor.index - start == 1:
        node.meta[_WITHOUT_UNIT] = True  # no part of the meaning, but often a mistake
    assert duration.span is not None, "a duration that was read has a span"
    record_value(node, key, duration.span)


def _read_rows(cursor: Cursor, closing: str) -> int:
    sign = -1 if cursor.accept("-") else 1
    token: Token | None = cursor.current
    if token is None or token.token_type is not TokenType.NUMBER or not token.text.isdecimal():
        cursor.fail_expected("a whole number of rows", hint="write a number, as in ROWS 10")
    if len(token.text) > len(str(2**63)):
        cursor.fail("the number of rows is too large", span=token_span(token))
    cursor.index += 1
    if not cursor.at_any(("SLIDE", *_KINDS, closing)):
        cursor.fail(
            f"ROWS takes no unit, found {cursor.found()}",
            hint="a window of so much time is written RANGE",
        )
    return sign * int(token.text)


def _read_column(cursor: Cursor) -> exp.Column:
    start = cursor.index
    names = [cursor.name("a column")]
    if cursor.accept("."):
        names.append(cursor.name("a column"))
    parts = []
    for name in names:
        assert name.span is not None, "a name that was read has a span"
        parts.append(record(exp.Identifier(this=name.text, quoted=False), name.span))
    column = exp.Column(this=parts[-1])
    if len(parts) > 1:
        column.set("table", parts[0])
    return record(column, cursor.span_from(start))


def _refuse_rest(cursor: Cursor, node: WindowClause, closing: str) -> None:
    if cursor.at("PARTITION BY"):
        cursor.fail("PARTITION BY stands first in a window", hint="[PARTITION BY column ROWS 10]")
    if cursor.at("SLIDE") and node.frame in _STILL:
        cursor.fail(f"{node.frame} takes no SLIDE", hint=_STILL[node.frame])
    if cursor.at("SLIDE"):
        _refuse_order(cursor)
    if cursor.at("INTERNAL") and node.frame == "NOW":
        cursor.fail(
            "NOW cannot be INTERNAL",
            hint="to keep every row for ever, write RANGE UNBOUNDED INTERNAL",
        )
    slide = "" if node.frame == "SESSION" else "SLIDE, "
    cursor.fail_expected(f'{slide}INTERNAL or "{closing}"')


def _refuse_order(cursor: Cursor) -> None:
    cursor.fail("INTERNAL or EXTERNAL stands last in a window", hint="[RANGE 10 MINUTES INTERNAL]")
