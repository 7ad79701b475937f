r"""Masking: texts without the secrets they hold, for everything that leaves the process.

A secret is the value of an option whose name says so (``password``, ``kafka.sasl.jaas.config``,
``access_key``), and inside any string the user of a URL with its password and every parameter with
such a name. It becomes ``***``. The text may be broken anywhere, as that of an error is, so tokens
are looked at and no tree; in doubt more is masked than has to be.

>>> masked("SOURCE jdbc(url => 'jdbc:x://ann:moon@host/db?password=sun&ssl=1', pwd => 'it''s')")
"SOURCE jdbc(url => 'jdbc:x://ann:***@host/db?password=***&ssl=1', pwd => '***')"
>>> masked("SOURCE jdbc('x', password => env('DB_PASSWORD'))")
"SOURCE jdbc('x', password => env('DB_PASSWORD'))"
>>> masked("SELECT token FROM visit WHERE token = 'abc'")
"SELECT token FROM visit WHERE token = 'abc'"
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "MASK",
    "Masked",
    "is_secret",
    "mask",
    "masked",
    "masked_prose",
    "masked_value",
    "secrets_in",
    "secrets_of",
    "without_secrets",
]

MASK: Final = "***"
"""What is shown instead of a secret."""

_WORDS: Final = re.compile(
    r"passw(?:or)?d|passphrase|pwd|secret|token|credential|jaas|authorization|bearer"
    r"|(?:access|account|api|auth|client|encryption|function|master|private|service|shared"
    r"|signing|ssl|storage|subscription|keystore)key(?!store)"
)
_PARTS: Final = frozenset({"pass", "sas", "sig", "signature", "apikey"})

_TOKEN: Final = re.compile(
    r"""
      (?P<blank>\s+)
    | (?P<comment>--[^\n\r]* | /\*.*?(?:\*/|\Z))
    | (?P<string>'(?:[^']|'')*+(?:'|\Z))
    | (?P<name>"(?:[^"]|"")*+(?:"|\Z) | `(?:[^`]|``)*+(?:`|\Z) | [^\W0-9]\w*)
    | (?P<number>[0-9][\w.]*)
    | (?P<arrow>=>|:=|==|=|:(?!:))
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_GAP: Final = r"(?:\s|/\*(?:[^*]|\*(?!/)){,200}+\*/|--[^\n]{,200}+\n)*+"  # comments are short
_PARAMETER: Final = re.compile(rf"""(?<![\w.\-])([\w.\-]+)(["'`]{{0,2}}){_GAP}(=>|=|:){_GAP}""")
_END_OF_VALUE: Final = r"(?=[\s&;]|\Z)"
_FLAGS: Final = re.VERBOSE | re.DOTALL
_QUOTED: Final = r'''"(?:\\.|[^"\\])*"'''


class _Place(NamedTuple):
    """Where a secret is looked for: how far the value of a parameter goes there, and a URL."""

    value: re.Pattern[str]
    end_of_url: re.Pattern[str]


_IN_STRING: Final = _Place(
    re.compile(
        rf"""{_QUOTED}{_END_OF_VALUE} | ''(?:\\.|[^'\\])*''{_END_OF_VALUE}
        | (?:''|").* | [^&;]+""",  # quotes that nothing closes may hold anything
        _FLAGS,
    ),
    re.compile(r"\Z"),
)
_IN_PROSE: Final = _Place(
    re.compile(rf"""{_QUOTED} | '(?:[^']|'')*+(?:'|\Z) | "[^\n]* | [^\s&;,)'"]+""", _FLAGS),
    re.compile(r"""[\s'"<>]"""),
)
_IN_BROKEN: Final = _Place(  # where strings begin and end is anybody's guess
    re.compile(rf"""(?:{_QUOTED} | '(?:[^']|'')*+(?:'|\Z))?[^\n]*""", _FLAGS),
    re.compile(r"\n"),
)
_SCHEME: Final = re.compile(r"([A-Za-z][\w+.\-]*)(?:://+|(?<=\w\w):/)")  # a path has one stroke
_ORACLE: Final = re.compile(r"jdbc:oracle:\w+:[^/@\s]{,200}/((?:[^'\s]|''){1,200})@")
_CONTAINERS: Final = frozenset({"abfs", "abfss", "file", "wasb", "wasbs"})
"""Schemes with something before the @ that is no user."""

_LONG: Final = 4
"""A secret that is shorter is looked for as a whole word only."""


@dataclass(frozen=True, slots=True)
class _Hidden:
    """A part of a text, and what is shown instead."""

    start: int
    end: int
    shown: str = MASK


@dataclass(frozen=True, slots=True)
class Masked:
    """A text without its secrets, and where its characters have gone.

    Attributes:
        text: What may be shown.
        hidden: What was replaced, in the order of the text.
    """

    text: str
    hidden: tuple[_Hidden, ...]

    def position(self, offset: int, *, is_end: bool = False) -> int:
        """Where a place of the original text is now; inside a secret, at an end of its mask.

        >>> found = mask("x(password => 'long secret', b)")
        >>> found.text, found.text[found.position(28):]
        ("x(password => '***', b)", ' b)')
        """
        shift = 0
        for part in self.hidden:
            if offset >= part.end:
                shift += len(part.shown) - (part.end - part.start)
            elif offset > part.start:
                return part.start + shift + (len(part.shown) if is_end else 0)
            else:
                break
        return offset + shift

    def line_start(self, offset: int) -> int:
        """The place itself, or the beginning of the secret that it is inside of."""
        inside = (part.start for part in self.hidden if part.start < offset < part.end)
        return next(inside, offset)


def is_secret(name: str) -> bool:
    """Whether the value of an option or parameter of this name is a secret.

    >>> [name for name in ("user", "sfPassword", "kafka.sasl.jaas.config", "key", "primary_key",
    ...                    "fs.azure.account.key.x", "API-Key", "bypass") if is_secret(name)]
    ['sfPassword', 'kafka.sasl.jaas.config', 'fs.azure.account.key.x', 'API-Key']
    """
    parts = re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())
    return not _PARTS.isdisjoint(parts) or _WORDS.search("".join(parts)) is not None


def mask(text: str) -> Masked:
    """The text of statements, also of broken ones, without secrets."""
    hidden = _merged(_in_statements(text))
    return Masked(_replaced(text, hidden), tuple(hidden))


def masked(text: str) -> str:
    """The text of statements, also of broken ones, without secrets."""
    return mask(text).text


def masked_prose(text: str) -> str:
    """A message without the secrets that can be told by their form.

    >>> masked_prose("no route to http://ann:moon@host/x?token=sun (token expected)")
    'no route to http://ann:***@host/x?token=*** (token expected)'
    """
    return _replaced(text, _merged(_in_text(text, 0, where=_IN_PROSE)))


def masked_value(name: str, value: str | float | bool) -> str | int | float | bool:  # noqa: FBT001
    """The value of an option as it may be shown.

    >>> masked_value("password", 5), masked_value("url", "x://ann:moon@host"), masked_value("n", 2)
    ('***', 'x://ann:***@host', 2)
    """
    if is_secret(name):
        return MASK
    if not isinstance(value, str):
        return value
    written = value.replace("'", "''")
    shown = _replaced(written, _merged(_in_text(written, 0, where=_IN_STRING)))
    return shown.replace("''", "'")


def secrets_in(text: str) -> frozenset[str]:
    """The secrets of a text of statements: as they were written, and as they are meant."""
    return frozenset(
        form
        for part in mask(text).hidden
        for token in (text[part.start : part.end], *_tokens_of(text[part.start : part.end]))
        for form in (token, token.replace("''", "'"))
        if any(map(str.isalnum, form))
    )


def secrets_of(options: Iterable[tuple[str, str | int | float | bool]]) -> frozenset[str]:
    """The secrets among the options of a connector."""
    found: set[str] = set()
    for name, value in options:
        if is_secret(name):
            found.add(str(value))
        else:
            text = str(value).replace("'", "''")
            parts = _merged(_in_text(text, 0, where=_IN_STRING))
            found.update(text[part.start : part.end].replace("''", "'") for part in parts)
    return frozenset(secret for secret in found if secret.strip())


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """The text with a mask wherever one of these secrets stands.

    >>> without_secrets("cannot log in with moonlight as an", {"moonlight", "a"})
    'cannot log in with *** as an'
    """
    for secret in sorted(secrets, key=lambda each: (-len(each), each)):
        if len(secret) >= _LONG:
            text = text.replace(secret, MASK)
        else:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", MASK, text)
    return text


def _tokens_of(text: str) -> Iterator[str]:
    for token in _TOKEN.finditer(text):
        if token.lastgroup in ("string", "name", "number"):
            yield token[0].strip("'\"`")


def _in_statements(text: str) -> Iterator[_Hidden]:
    """What is to be hidden, in no order."""
    all_tokens = list(_TOKEN.finditer(text))
    if any(_is_unfinished(token) for token in all_tokens):
        yield from _in_text(text, 0, where=_IN_BROKEN)
    for token in all_tokens:
        if token.lastgroup == "string":
            yield from _in_text(token[0][1:].removesuffix("'"), token.start() + 1, where=_IN_STRING)
        elif token.lastgroup == "comment":
            yield from _in_text(token[0], token.start(), where=_IN_PROSE)
    yield from _in_options([t for t in all_tokens if t.lastgroup not in ("blank", "comment")])


def _is_unfinished(token: re.Match[str]) -> bool:
    text = token[0]
    if token.lastgroup == "comment":
        return text.startswith("/*") and not (text.endswith("*/") and len(text) > len("/**"))
    if text[0] not in "'\"`":
        return False
    # Quotes that are doubled stand for themselves: what is closed has an even number of them.
    return text.count(text[0]) % 2 == 1


def _in_options(tokens: Sequence[re.Match[str]]) -> Iterator[_Hidden]:
    """The values of options, ``name => value``; before a query also where it is written wrongly."""
    is_query = False
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if token[0] == ";":
            is_query = False
        if token.lastgroup != "name":
            continue
        is_query = is_query or token[0].upper() == "SELECT"
        name = token[0].strip('"`')
        while _joins(tokens, place):
            name += "." + tokens[place + 1][0].strip('"`')
            place += 2
        if not is_secret(name) or place == len(tokens):
            continue
        following = tokens[place]
        if following.lastgroup == "arrow" and (following[0] == "=>" or not is_query):
            first = place + 1
        elif following.lastgroup == "string" and not is_query:
            first = place
        else:
            continue
        place = _end_of_value(tokens, first)
        if place > first and not _is_environment(tokens[first:place]):
            yield _value(tokens[first:place])


def _is_environment(tokens: Sequence[re.Match[str]]) -> bool:
    """Whether a value is ``env('NAME')``, which says where a secret is and not what it is."""
    match [token[0] for token in tokens]:
        case [word, "(", name, ")"]:
            return word.lower() == "env" and tokens[2].lastgroup == "string" and name.endswith("'")
        case _:
            return False


def _joins(tokens: Sequence[re.Match[str]], place: int) -> bool:
    """Whether a name goes on here, behind a point or a hyphen."""
    return (
        place + 1 < len(tokens)
        and tokens[place][0] in (".", "-")
        and tokens[place + 1].lastgroup in ("name", "number")
    )


def _end_of_value(tokens: Sequence[re.Match[str]], first: int) -> int:
    """The place of the first token behind a value, which may be more than one by mistake."""
    depth = 0
    for place in range(first, len(tokens)):
        sign = tokens[place][0]
        if depth == 0 and sign in (",", ")", ";"):
            return place
        if place > first and depth == 0 and _is_named(tokens, place):
            return place
        depth += (sign in ("(", "[")) - (sign in (")", "]"))
    return len(tokens)


def _is_named(tokens: Sequence[re.Match[str]], place: int) -> bool:
    """Whether the next option begins here, and a comma is missing."""
    return (
        tokens[place].lastgroup == "name"
        and place + 1 < len(tokens)
        and tokens[place + 1][0] == "=>"
    )


def _value(tokens: Sequence[re.Match[str]]) -> _Hidden:
    return _Hidden(tokens[0].start(), tokens[-1].end(), f"'{MASK}'")


def _in_text(text: str, start: int, *, where: _Place) -> Iterator[_Hidden]:
    """The secrets in a string, a comment or a message, which begins at ``start`` of the whole."""
    done = 0
    for found in _PARAMETER.finditer(text):
        name, quote, arrow = found.groups()
        # A name at the end of a line is hidden with the value before it; its own value is not.
        if found.end() <= done or not is_secret(name):
            continue
        if arrow == ":" and not quote and not text.startswith(("'", '"'), found.end()):
            continue  # "token: …" is prose
        given = where.value.match(text, found.end())
        if given is None or not given[0]:
            continue
        done = max(done, given.end())
        first, last = given.span()
        quotes = next((q for q in ("''", "'", '"') if given[0].startswith(q)), "")
        if quotes and given[0].endswith(quotes) and len(given[0]) > 2 * len(quotes):
            first, last = first + len(quotes), last - len(quotes)
        yield _Hidden(start + first, start + last)
    for found in _ORACLE.finditer(text):
        yield _Hidden(start + found.start(1), start + found.end(1))
    schemes = list(_SCHEME.finditer(text))
    limits = [*(scheme.start() for scheme in schemes[1:]), len(text)]
    for scheme, limit in zip(schemes, limits, strict=False):
        stop = where.end_of_url.search(text, scheme.end(), limit)
        end = limit if stop is None else stop.start()
        first, last = _password(scheme[1], text[scheme.end() : end])
        if first < last:
            yield _Hidden(start + scheme.end() + first, start + scheme.end() + last)


def _password(scheme: str, rest: str) -> tuple[int, int]:
    """Where the password of a URL is, before the last @; without a colon, the user is masked."""
    last = re.split(r"[?#]", rest, maxsplit=1)[0].rfind("@")
    host, colon, port = rest.split("/", maxsplit=1)[0].partition(":")
    if "@" not in host and colon:
        # With a number behind the colon, the @ is in the path behind host and port.
        return (0, 0) if port.isdecimal() else (len(host) + 1, last)
    is_user = "@" in host and scheme.lower() not in _CONTAINERS
    return (0, last) if is_user else (0, 0)


def _merged(parts: Iterable[_Hidden]) -> list[_Hidden]:
    """The parts in order, those that overlap as one."""
    merged: list[_Hidden] = []
    for part in sorted(parts, key=lambda each: (each.start, -each.end)):
        if not merged or part.start >= merged[-1].end:
            merged.append(part)
        elif part.end > merged[-1].end:
            last = merged.pop()
            merged.append(_Hidden(last.start, part.end, last.shown))
    return merged


def _replaced(text: str, hidden: Iterable[_Hidden]) -> str:
    result, done = "", 0
    for part in hidden:
        result += text[done : part.start] + part.shown
        done = part.end
    return result + text[done:]
