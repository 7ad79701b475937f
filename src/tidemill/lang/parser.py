"""The parser: sqlglot's, narrowed to this language.

sqlglot's productions accept the union of thirty dialects and pass over what they do not need. Those
that are exact are inherited: OR, AND and the arithmetic levels. All others are replaced by
functions in the modules beside this one, which accept this language and nothing else. Each takes
the parser and answers with a node, or raises a ParseError at the token that does not fit; none
answers with None. From loose to tight, expressions are

    OR   AND   NOT   IS   = <> < <= > >=   BETWEEN IN LIKE   ||   + -   * / % //   unary -   ::
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NoReturn, TypeVar

from sqlglot import Token, TokenType, exp
from sqlglot import parser as sqlglot_parser

from tidemill.errors import ParseError, Span
from tidemill.lang.cursor import Cursor, is_name, reserved_hint
from tidemill.lang.depth import too_deep
from tidemill.lang.predicates import read_comparison, read_negation, read_range
from tidemill.lang.primaries import read_unary
from tidemill.lang.queries import read_order, read_query
from tidemill.lang.spans import record, span_of
from tidemill.lang.tokens import token_span
from tidemill.lang.unexpected import rest_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    N = TypeVar("N", bound=exp.Expr)
    T = TypeVar("T")

__all__ = ["Parser"]


class Parser(sqlglot_parser.Parser):
    """Reads queries and expressions."""

    TERM: ClassVar = {TokenType.DASH: exp.Sub, TokenType.PLUS: exp.Add}
    FACTOR: ClassVar = {
        TokenType.STAR: exp.Mul,
        TokenType.SLASH: exp.Div,
        TokenType.MOD: exp.Mod,
        TokenType.DIV: exp.IntDiv,
    }

    _ends: Collection[int] = ()

    # What the functions of the other modules use.

    @property
    def current(self) -> Token:
        """The token to be read next; a sentinel, which is false, at the end."""
        return self._curr

    @property
    def following(self) -> Token:
        """The token after the current one, or the sentinel."""
        return self._next

    @property
    def position(self) -> int:
        """The index of the current token; setting it moves the parser."""
        return self._index

    @position.setter
    def position(self, index: int) -> None:
        self._retreat(index)

    @property
    def cursor(self) -> Cursor:
        """A cursor at the current token."""
        return Cursor(self._tokens, self._index)

    def at(self, *types: TokenType) -> bool:
        """Whether the next token is of one of these types."""
        return self._curr.token_type in types

    def at_end_of_query(self) -> bool:
        """Whether the next token belongs to the statement around the query, if it can end here."""
        return self.ends_at(self._index)

    def ends_at(self, index: int) -> bool:
        """Whether the token there belongs to the statement around the query, if it ends there."""
        return index in self._ends

    def at_name(self) -> bool:
        """Whether the next token can be a name."""
        return is_name(self._curr)

    def accept(self, *types: TokenType) -> Token | None:
        """The next token, if it is of one of these types; the parser moves past it."""
        return self._prev if self._match_set(types) else None

    def expect(self, token_type: TokenType, what: str) -> Token:
        """The next token, which must be of this type."""
        if not self._match(token_type):
            self.fail_expected(what)
        return self._prev

    def read(self, production: Callable[[Cursor], T]) -> T:
        """What a production of a cursor reads here."""
        cursor = self.cursor
        value = production(cursor)
        self.position = cursor.index
        return value

    def identifier(self, what: str) -> exp.Identifier:
        """A name of something."""
        if not self.at_name():
            self.fail_expected(what, hint=reserved_hint(self._curr))
        name = self.read(lambda cursor: cursor.name(what))
        assert name.span is not None, "a name that was read has a span"
        return record(exp.Identifier(this=name.text, quoted=False), name.span)

    def mark(self, node: N, start: Token) -> N:
        """Note that the node stands in the text from ``start`` up to here."""
        return record(node, Span(start.start, self._prev.end + 1))

    def separated(self, item: Callable[[], T]) -> list[T]:
        """One or more items between commas."""
        items = [item()]
        while self._match(TokenType.COMMA):
            items.append(item())
        return items

    def query(self) -> exp.Expr:
        """A query, from WITH or SELECT to LIMIT."""
        return read_query(self)

    def scalar(self) -> exp.Expr:
        """An expression."""
        return _present(self._parse_disjunction())

    def operand(self) -> exp.Expr:
        """An expression that binds tighter than BETWEEN, IN and LIKE."""
        this = _present(self._parse_term())
        while self._match(TokenType.DPIPE):
            this = exp.DPipe(this=this, expression=_present(self._parse_term()), safe=False)
        return this

    def order(self) -> exp.Order | None:
        """ORDER BY, if it comes next."""
        return read_order(self)

    def fail(self, message: str, *, span: Span | None = None, hint: str | None = None) -> NoReturn:
        """Raise a ParseError, at the current token unless told otherwise."""
        raise ParseError(message, span=span or self.cursor.here(), hint=hint)

    def fail_expected(self, what: str, *, hint: str | None = None) -> NoReturn:
        """Raise a ParseError that says what should have come next."""
        if hint is None and self._prev and self._prev.token_type is TokenType.COMMA:
            hint = "remove the comma, or write what should follow it"
        self.cursor.fail_expected(what, hint=hint or rest_hint(self._prev, self._curr))

    # What a caller uses.

    def read_whole(
        self,
        tokens: Sequence[Token],
        start: int,
        production: Callable[[Parser], exp.Expr],
        ends: Collection[int] = (),
    ) -> exp.Expr:
        """What the production reads, which must be all of the tokens from index ``start`` on.

        Args:
            tokens: The tokens of a statement.
            start: Where to begin.
            production: What to read.
            ends: Where it may end before the tokens do. A name that stands there is no alias.
        """
        self.reset()
        self._ends = ends
        self._chunks = [list(tokens)]
        self._advance_chunk()
        self.position = start
        try:
            tree = production(self)
        except RecursionError:
            self._fail_too_deep(self.cursor.here())
        if self._curr and not self.at_end_of_query():
            hint = rest_hint(self._prev, self._curr)
            self.fail(f"unexpected {self.cursor.found()}", hint=hint)
        if node := too_deep(tree):
            self._fail_too_deep(span_of(node))
        return tree

    def _fail_too_deep(self, span: Span | None) -> NoReturn:
        self.fail(
            "the statement is nested too deeply",
            span=span,
            hint="give a part of it a name, with WITH or CREATE STREAM",
        )

    # What sqlglot's inherited productions and its entry points use.

    def raise_error(self, message: str, token: Token = sqlglot_parser.SENTINEL_NONE) -> NoReturn:
        """Raise our ParseError in place of sqlglot's."""
        self.fail(message[:1].lower() + message[1:], span=token_span(token) if token else None)

    def _parse_statement(self) -> exp.Expr | None:
        return read_query(self) if self._curr else None

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr:  # noqa: ARG002, FBT001, FBT002
        return read_negation(self)

    def _parse_comparison(self, this: exp.Expr | None = None) -> exp.Expr:
        return read_comparison(self, this)

    def _parse_range(
        self,
        this: exp.Expr | None = None,
        parse_is: bool = False,  # noqa: ARG002, FBT001, FBT002
    ) -> exp.Expr:
        return read_range(self, this)

    def _parse_bitwise(self) -> exp.Expr:
        return self.operand()

    def _parse_at_time_zone(self, this: exp.Expr | None) -> exp.Expr | None:
        return this

    def _parse_unary(self) -> exp.Expr:
        return read_unary(self)


def _present(node: exp.Expr | None) -> exp.Expr:
    assert node is not None, "no production answers with None"
    return node
