"""The functions of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import Call, Expr, Literal
from tidemill.algebra.functions.patterns import PatternError, check_replacement, compile_pattern
from tidemill.catalog.functions.conversion import convert
from tidemill.catalog.functions.signature import (
    Arguments,
    Family,
    Function,
    Parameter,
    call,
    optional,
)
from tidemill.errors import BindError
from tidemill.model.types import BIGINT, BOOLEAN, INTEGER, VARCHAR, DataType

if TYPE_CHECKING:
    from tidemill.catalog.functions.signature import Builder

__all__ = ["TEXT_FUNCTIONS"]

_TEXT = Parameter("text", VARCHAR)
_SEARCH = Parameter("search", VARCHAR)
_PATTERN = Parameter("pattern", VARCHAR)
_COUNT = Parameter("count", BIGINT)
_PAD = (_TEXT, Parameter("length", BIGINT), Parameter("pad", VARCHAR))
_TRIM = (_TEXT, optional("characters", VARCHAR))


def _function(
    name: str,
    parameters: tuple[Parameter, ...],
    description: str,
    build: Builder | DataType,
    *aliases: str,
) -> Function:
    builder = call(build) if isinstance(build, DataType) else build
    return Function(name, parameters, description, "text", builder, aliases=aliases)


def _joined(arguments: Arguments) -> Expr:
    """Arguments of any type, as text."""
    texts = tuple(convert(expr, VARCHAR) for expr in arguments.exprs)
    return Call(arguments.function.name, texts, VARCHAR)


def _joined_with_separator(arguments: Arguments) -> Expr:
    texts = tuple(convert(expr, VARCHAR) for expr in arguments.exprs[1:])
    return Call("concat_ws", (arguments.argument(0), *texts), VARCHAR)


def _position(arguments: Arguments) -> Expr:
    search, text = arguments.converted()
    return Call("strpos", (text, search), BIGINT)


def _like(arguments: Arguments) -> Expr:
    converted = arguments.converted()
    if len(arguments) > 2:  # noqa: PLR2004 — text, pattern, escape
        escape = arguments.constant(2)
        if len(escape) > 1:
            raise BindError(
                "the escape of LIKE must be one character",
                span=arguments.span_of(2),
                hint="as in LIKE '10!%' ESCAPE '!'",
            )
        converted = converted if escape else converted[:2]
    return Call(arguments.function.name, converted, BOOLEAN)


def _regexp(result: DataType) -> Builder:
    """A call whose pattern is a constant and has been checked."""

    def build(arguments: Arguments) -> Expr:
        converted = arguments.converted()
        try:
            pattern = compile_pattern(arguments.constant(1))
        except PatternError as error:
            raise BindError(
                f"the pattern is not valid: {error}",
                span=arguments.span_of(1),
                hint="a special character is taken as it is behind a backslash",
            ) from error
        if arguments.function.name == "regexp_replace":
            _check_replacement(arguments, pattern.groups)
        if arguments.function.name == "regexp_extract" and len(arguments) > 2:  # noqa: PLR2004
            _check_group(arguments, pattern.groups)
        return Call(arguments.function.name, converted, result)

    return build


def _check_replacement(arguments: Arguments, groups: int) -> None:
    try:
        check_replacement(arguments.constant(2), groups)
    except PatternError as error:
        raise BindError(
            f"the replacement is not valid: {error}",
            span=arguments.span_of(2),
            hint="a group is written \\1, a backslash \\\\",
        ) from error
    if len(arguments) > 3 and arguments.constant(3) not in ("", "g"):  # noqa: PLR2004
        raise BindError(
            f'option "{arguments.constant(3)}" of "regexp_replace" does not exist',
            span=arguments.span_of(3),
            hint="'g' replaces every match",
        )


def _check_group(arguments: Arguments, groups: int) -> None:
    match arguments.exprs[2]:
        case Literal(int() as group) if 0 <= group <= groups:
            return
        case Literal(int() as group):
            raise BindError(
                f"the pattern has no group {group}",
                span=arguments.span_of(2),
                hint="groups are counted from 1 by their opening parentheses",
            )
        case _:
            raise BindError(
                'argument 3 of "regexp_extract", group, must be a constant number',
                span=arguments.span_of(2),
                hint=arguments.function.signature,
            )


TEXT_FUNCTIONS = (
    Function(
        "||",
        (Parameter("a", Family.ANY), Parameter("b", Family.ANY)),
        "the two texts, one after the other",
        "operator",
        _joined,
        form="a || b",
    ),
    Function(
        "like",
        (_TEXT, _PATTERN, optional("escape", VARCHAR)),
        "whether the whole text matches: % is any text, _ any character",
        "operator",
        _like,
        form="text LIKE pattern [ESCAPE escape]",
    ),
    Function(
        "ilike",
        (_TEXT, _PATTERN, optional("escape", VARCHAR)),
        "LIKE without regard to case",
        "operator",
        _like,
        form="text ILIKE pattern [ESCAPE escape]",
    ),
    _function("lower", (_TEXT,), "the text in lower case", VARCHAR, "lcase"),
    _function("upper", (_TEXT,), "the text in upper case", VARCHAR, "ucase"),
    _function(
        "length",
        (_TEXT,),
        "the number of characters",
        BIGINT,
        "len",
        "char_length",
        "character_length",
    ),
    _function("trim", _TRIM, "the text without blanks (or the characters) at both ends", VARCHAR),
    _function("ltrim", _TRIM, "the text without blanks (or the characters) at its start", VARCHAR),
    _function("rtrim", _TRIM, "the text without blanks (or the characters) at its end", VARCHAR),
    _function(
        "substring",
        (_TEXT, Parameter("start", BIGINT), optional("length", BIGINT)),
        "the part from start, counted from 1, or from the end if negative",
        VARCHAR,
        "substr",
    ),
    _function(
        "left", (_TEXT, _COUNT), "the first characters; all but the last if negative", VARCHAR
    ),
    _function(
        "right", (_TEXT, _COUNT), "the last characters; all but the first if negative", VARCHAR
    ),
    _function(
        "replace",
        (_TEXT, _SEARCH, Parameter("replacement", VARCHAR)),
        "the text with every occurrence replaced",
        VARCHAR,
    ),
    Function(
        "concat",
        (Parameter("a", Family.ANY),),
        "the texts one after the other, without NULLs",
        "text",
        _joined,
        variadic=True,
    ),
    Function(
        "concat_ws",
        (Parameter("separator", VARCHAR), Parameter("a", Family.ANY)),
        "the texts with a separator between them, without NULLs",
        "text",
        _joined_with_separator,
        variadic=True,
    ),
    _function("starts_with", (_TEXT, _SEARCH), "whether the text begins so", BOOLEAN),
    _function("ends_with", (_TEXT, _SEARCH), "whether the text ends so", BOOLEAN),
    _function("contains", (_TEXT, _SEARCH), "whether the text has it somewhere", BOOLEAN),
    _function(
        "strpos",
        (_TEXT, _SEARCH),
        "where it first occurs, counted from 1; 0 if nowhere",
        BIGINT,
        "instr",
    ),
    Function(
        "position",
        (_SEARCH, _TEXT),
        "where it first occurs, counted from 1; 0 if nowhere",
        "text",
        _position,
        form="position(search VARCHAR IN text VARCHAR)",
    ),
    _function("lpad", _PAD, "the text filled up on the left, or cut, to a length", VARCHAR),
    _function("rpad", _PAD, "the text filled up on the right, or cut, to a length", VARCHAR),
    _function("reverse", (_TEXT,), "the characters in reverse order", VARCHAR),
    _function("repeat", (_TEXT, _COUNT), "the text so many times", VARCHAR),
    _function(
        "split_part",
        (_TEXT, Parameter("separator", VARCHAR), Parameter("index", BIGINT)),
        "the part between separators, counted from 1, or from the end if negative",
        VARCHAR,
    ),
    _function(
        "regexp_matches",
        (_TEXT, _PATTERN),
        "whether the pattern occurs in the text",
        _regexp(BOOLEAN),
    ),
    _function(
        "regexp_replace",
        (_TEXT, _PATTERN, Parameter("replacement", VARCHAR), optional("options", VARCHAR)),
        "the text with the first match replaced; with 'g' every match",
        _regexp(VARCHAR),
    ),
    _function(
        "regexp_extract",
        (_TEXT, _PATTERN, optional("group", BIGINT)),
        "the first match, or a group of it; empty if there is none",
        _regexp(VARCHAR),
    ),
    _function("chr", (Parameter("code", BIGINT),), "the character with this code point", VARCHAR),
    _function("ascii", (_TEXT,), "the code point of the first character", INTEGER),
)
