"""Checking: whether a statement names a connector that there is, and says what it takes.

It is done when a stream, relation or query is created, with the place of the mistake. What only the
outside world knows is found when a run begins: whether a path is there, whether Spark has a format.

Law: what has been checked for an engine needs no further check of its options there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from tidemill.connectors import CONNECTORS
from tidemill.connectors.connector import Connector, Engine, Given, Guarantee, Use
from tidemill.connectors.files import FILES_SOURCE
from tidemill.connectors.options import (
    Choice,
    Flag,
    Option,
    Text,
    default_text,
    fault,
    option_text,
    type_text,
    value_text,
)
from tidemill.connectors.registry import connector_names, find, near
from tidemill.connectors.spark_format import SPARK_FORMAT
from tidemill.errors import BindError, RunError, closest, suggestion
from tidemill.lang.statements import Environment
from tidemill.masking import secrets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidemill.connectors.options import Value
    from tidemill.errors import Span
    from tidemill.lang.statements import Argument, ConnectorCall, Name

__all__ = [
    "Arguments",
    "NotSetError",
    "arguments_of",
    "check",
    "guarantee",
    "reads_files",
    "refuse_literal_secrets",
]


class NotSetError(BindError):
    """A connector is to be given what is in the environment, and it is not there."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a statement says about a source or sink, checked.

    Attributes:
        connector: The connector.
        options: The options it has for this use.
        given: The values of those that are given, by name.
        passed: Other options, for connectors that pass them on.
        places: Where the values stand.
    """

    connector: Connector
    options: tuple[Option, ...]
    given: Given = field(repr=False)
    passed: Mapping[str, str] = field(default_factory=dict, repr=False)
    places: Mapping[str, Span | None] = field(default_factory=dict, repr=False)

    def text(self, name: str) -> str:
        """The value of an option that is a string; empty if it is not given."""
        found = self._value(name, default="")
        assert isinstance(found, str), "it was checked"
        return found

    def whole(self, name: str) -> int:
        """The value of an option that is a whole number."""
        found = self._value(name)
        assert isinstance(found, int), "it was checked"
        return found

    def flag(self, name: str) -> bool:
        """The value of an option that is TRUE or FALSE."""
        found = self._value(name)
        assert isinstance(found, bool), "it was checked"
        return found

    def values(self) -> Given:
        """What a connector of another package gets: what is said, and defaults for the others."""
        defaults = {o.name: o.default for o in self.options if o.default is not None}
        return {**defaults, **self.given, **self.passed}

    def _value(self, name: str, default: Value | None = None) -> Value | None:
        defaults = (option.default for option in self.options if option.name == name)
        declared = next(defaults, None)
        return self.given.get(name, default if declared is None else declared)


def check(
    call: ConnectorCall, use: Use, *, engine: Engine | None = None, looks_up: bool = True
) -> Arguments:
    """What a statement says about a source or sink.

    Args:
        call: The connector as it was written.
        use: What it is used for.
        engine: Where the statement is to run; ``None`` for anywhere.
        looks_up: Whether what is in the environment must be there now; otherwise it is taken for
            ``env('NAME')``.

    Raises:
        BindError: There is no such connector, it cannot be used so, or an option is missing,
            wrong, given twice, not known, or not in the environment.
    """
    connector, known = _connector(call.name, engine)
    options = connector.options(use)
    if options is None:
        raise _not_usable(call.name, connector, use, engine)
    left = tuple(option for option in options if option.name not in known)
    given: dict[str, Value] = dict(known)
    places: dict[str, Span | None] = {}
    for option, value, place in chain(
        _positional(call, left, passes=connector.passes_options), _named(call, left)
    ):
        if option.name in given:
            raise BindError(
                f'option "{option.name}" is given twice: its value stands first, without its name',
                span=call.spans.names.get(option.name),
                hint="leave one of them out",
            )
        places[option.name] = place
        if isinstance(value, Environment):
            given[option.name] = _looked_up(option, value, place, looks_up=looks_up)
            continue
        _require(option, value, place)
        given[option.name] = value
    names = {option.name for option in left}
    others = [pair for pair in call.named if pair[0] not in names]
    for name, _ in others:
        _require_passing(call, connector, use, left, name)
    missing = next(
        (option for option in left if option.required and option.name not in given), None
    )
    if missing is not None:
        raise BindError(
            f'"{call.name.text}" needs option "{missing.name}"',
            span=call.name.span,
            hint=f"write {call.name.text}({missing.name} => {_example(missing)})",
        )
    passed = {
        name: _found(value, call.spans.values.get(name), looks_up=looks_up)
        if isinstance(value, Environment)
        else option_text(value)
        for name, value in others
    }
    return Arguments(connector, options, given, passed, places)


def arguments_of(call: ConnectorCall, use: Use) -> Arguments:
    """What a statement that was checked says about a source or sink.

    Raises:
        RunError: Something of it is in the environment, and is not there any more.
    """
    try:
        return check(call, use)
    except NotSetError as error:
        raise RunError(error.message, hint=error.hint) from None


def reads_files(call: ConnectorCall) -> bool:
    """Whether a source is a directory of files."""
    connector = find(call.name)
    return connector is not None and connector.source is FILES_SOURCE


def refuse_literal_secrets(call: ConnectorCall) -> None:
    """Refuse a secret that stands in a statement which is kept.

    Raises:
        BindError: There is one.
    """
    for name, value in (*(("", value) for value in call.positional), *call.named):
        if not isinstance(value, Environment) and secrets_of([(name, value)]):
            where = f'option "{name}"' if name else f'an option of "{call.name.text}"'
            raise BindError(
                f"{where} holds a secret, and statements are kept in the checkpoint",
                span=call.spans.values.get(name, call.name.span),
                hint="put it into an environment variable, and write env('NAME') for it",
            )


def guarantee(sink: ConnectorCall | None) -> Guarantee:
    """What the sink of a query promises; without one the answer is in memory."""
    if sink is None:
        return Guarantee.SESSION
    connector, _ = _connector(sink.name, None)
    assert connector.sink is not None, "it was checked"
    return connector.sink.guarantee


def _connector(name: Name, engine: Engine | None) -> tuple[Connector, dict[str, Value]]:
    """The connector of a name, and what the name says about its options."""
    found = find(name)
    if found is not None and (engine is None or engine in found.engines):
        return found, {}
    if found is not None:
        assert engine is not None, "some engine does not have it"
        others = " or ".join(f'"{other}"' for other in found.engines)
        raise BindError(
            f'{_engine_text(engine)} has no connector "{name.text}"',
            span=name.span,
            hint=f"it runs with connect(engine={others})",
        )
    meant = near(name.text)
    if engine is Engine.LOCAL:
        raise BindError(
            f'{_engine_text(engine)} has no connector "{name.text}"',
            span=name.span,
            hint=f'did you mean "{meant}"?'
            if meant
            else "it has "
            + ", ".join(n for n in connector_names() if n != SPARK_FORMAT.name)
            + '; connect(engine="spark") has formats of Spark\'s, too',
        )
    if meant is not None:
        raise BindError(
            f'there is no connector "{name.text}"',
            span=name.span,
            hint=f'did you mean "{meant}"? A format of Spark\'s of this name is written '
            f"{SPARK_FORMAT.name}({value_text(name.text)}, …)",
        )
    return SPARK_FORMAT, {"format": name.text}


def _engine_text(engine: Engine) -> str:
    return "the local engine" if engine is Engine.LOCAL else "Spark"


def _not_usable(name: Name, connector: Connector, use: Use, engine: Engine | None) -> BindError:
    here = [c for c in CONNECTORS if engine is None or engine in c.engines]
    usable = ", ".join(c.name for c in here if c.options(use) is not None)
    if use is Use.RELATION and connector.source is not None:
        what = f'a relation cannot be read from "{name.text}"'
        if connector is SPARK_FORMAT:
            what += ", a format of Spark's"
        return BindError(what, span=name.span, hint=f"relations are read from {usable}")
    is_what, not_what = ("source", "sink") if use is Use.SINK else ("sink", "source")
    return BindError(
        f'"{name.text}" is a {is_what}, not a {not_what}',
        span=name.span,
        hint=f"the {not_what}s are {usable}",
    )


def _positional(
    call: ConnectorCall, options: tuple[Option, ...], *, passes: bool
) -> Iterator[tuple[Option, Argument, Span | None]]:
    """The values without a name, each with its option."""
    allowed = [option for option in options if option.positional]
    places: list[Span | None] = [*call.spans.positional]
    places += [call.name.span] * (len(call.positional) - len(places))
    yield from zip(allowed, call.positional, places, strict=False)
    if len(call.positional) <= len(allowed):
        return
    others = [option.name for option in options if not option.positional]
    if not options:
        message, hint = "takes no options", f"write {call.name.text}()"
    elif not allowed:
        example = f"{options[0].name} => {_example(options[0])}"
        message, hint = "takes options by their names", f"write {call.name.text}({example})"
    else:
        most = "one value" if len(allowed) == 1 else f"{len(allowed)} values"
        message = f"takes at most {most} without a name: {_list(allowed)}"
        named = f"write others with their names: {', '.join(others) or 'name => value'}"
        hint = named if others or passes else "leave it out"
    raise BindError(f'"{call.name.text}" {message}', span=places[len(allowed)], hint=hint)


def _named(
    call: ConnectorCall, options: tuple[Option, ...]
) -> Iterator[tuple[Option, Argument, Span | None]]:
    """The values with the name of an option, each with that."""
    by_name = {option.name: option for option in options}
    for name, value in call.named:
        if name in by_name:
            yield by_name[name], value, call.spans.values.get(name)


def _looked_up(option: Option, value: Environment, place: Span | None, *, looks_up: bool) -> str:
    """What the environment has for an option."""
    if not isinstance(option.type, Text):
        raise BindError(
            f'option "{option.name}" must be {type_text(option.type)}, and what is in the'
            " environment is a string",
            span=place,
            hint=f"write {option.name} => {_example(option)}",
        )
    return _found(value, place, looks_up=looks_up)


def _found(value: Environment, place: Span | None, *, looks_up: bool) -> str:
    """What is in the environment, or its name if nothing is to be looked up."""
    if not looks_up:
        return repr(value)
    found = value.value()
    if found is None:
        raise NotSetError(
            f'the environment variable "{value.name}" is not set, or empty',
            span=place,
            hint=f"set {value.name} before this process is started",
        )
    return found


def _require(option: Option, value: Value, place: Span | None) -> None:
    """Refuse a value that is not of its option's type."""
    wrong = fault(option.type, value)
    if wrong is None:
        return
    hint = f"write {option.name} => {_example(option)}"
    if isinstance(option.type, Choice) and isinstance(value, str):
        hint = closest(value, option.type.values) or hint
    raise BindError(f'option "{option.name}" {wrong}', span=place, hint=hint)


def _require_passing(
    call: ConnectorCall, connector: Connector, use: Use, options: tuple[Option, ...], name: str
) -> None:
    """Refuse an option that the connector does not have, unless it passes it on."""
    names = [option.name for option in options]
    if connector.passes_options and name.lower() not in names:
        return
    place = call.spans.names.get(name)
    other = Use.STREAM if use is Use.SINK else Use.SINK
    if name in (option.name for option in connector.options(other) or ()):
        here, there = ("sinks", "sources") if use is Use.SINK else ("sources", "sinks")
        raise BindError(
            f'option "{name}" of "{call.name.text}" is for {there}',
            span=place,
            hint=f"{here} have {', '.join(names)}" if names else f"{here} have no options",
        )
    hint = suggestion(name, names, what="options")
    if not names:
        hint = f"write {call.name.text}()"
    raise BindError(f'"{call.name.text}" has no option "{name}"', span=place, hint=hint)


def _example(option: Option) -> str:
    match option.type:
        case Text():
            return "'…'"
        case Flag():
            return "TRUE"
        case _:
            return default_text(option) or "…"


def _list(options: list[Option]) -> str:
    return " and ".join(f'"{option.name}"' for option in options)
