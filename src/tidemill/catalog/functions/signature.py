"""What a function is to the binder: its parameters, and how a call of it is typed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from tidemill.algebra.expr import Call, Expr, Literal
from tidemill.catalog.functions.conversion import (
    castable,
    common,
    convert,
    converts_without_asking,
)
from tidemill.errors import BindError
from tidemill.model.types import DOUBLE, INTEGER, NULL, DataType

if TYPE_CHECKING:
    from tidemill.errors import Span

__all__ = [
    "Arguments",
    "Builder",
    "Family",
    "Function",
    "Parameter",
    "Wanted",
    "call",
    "call_of_common_type",
    "optional",
]


class Family(Enum):
    """A set of types that a parameter takes."""

    ANY = "ANY"
    NUMBER = "NUMBER"
    WHOLE = "INTEGER or BIGINT"

    def __str__(self) -> str:
        return self.value

    def holds(self, type_: DataType) -> bool:
        """Whether the type is one of the family."""
        match self:
            case Family.ANY:
                return True
            case Family.NUMBER:
                return type_.is_numeric
            case Family.WHOLE:
                return type_.is_integer


Wanted: TypeAlias = DataType | Family


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its name and what it takes.

    Attributes:
        name: What it is called in the signature.
        wanted: The type that an argument is converted to, or the family it must belong to.
        optional: Whether it can be left out; then so can all behind it.
    """

    name: str
    wanted: Wanted
    optional: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.wanted}"


def optional(name: str, wanted: Wanted) -> Parameter:
    """A parameter that can be left out."""
    return Parameter(name, wanted, optional=True)


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function or operator.

    Attributes:
        name: What it is called; also the name in the call unless ``build`` says otherwise.
        parameters: What it takes.
        description: What it gives, in one line.
        group: The heading it is listed under.
        build: The typed expression that a call of it stands for.
        aliases: Other names for the same.
        variadic: Whether the last parameter can be repeated.
        form: How an operator is written; empty for a function.
    """

    name: str
    parameters: tuple[Parameter, ...]
    description: str
    group: str
    build: Builder
    aliases: tuple[str, ...] = ()
    variadic: bool = False
    form: str = ""

    @property
    def signature(self) -> str:
        """How a call is written, with the types.

        >>> from tidemill.model.types import VARCHAR
        >>> pad = (Parameter("text", VARCHAR), optional("characters", VARCHAR))
        >>> Function("trim", pad, "", "text", call(VARCHAR)).signature
        'trim(text VARCHAR [, characters VARCHAR])'
        """
        if self.form:
            return self.form
        needed = ", ".join(str(p) for p in self.parameters if not p.optional)
        more = "".join(f" [, {p}]" for p in self.parameters if p.optional)
        return f"{self.name}({needed}{more}{', …' if self.variadic else ''})"

    def accepts(self, count: int) -> bool:
        """Whether it can be called with so many arguments."""
        least = sum(not p.optional for p in self.parameters)
        return count >= least and (self.variadic or count <= len(self.parameters))

    def parameter(self, index: int) -> Parameter:
        """The parameter that takes the argument at ``index``."""
        return self.parameters[min(index, len(self.parameters) - 1)]


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call, with where they stand in the text."""

    function: Function
    exprs: tuple[Expr, ...]
    span: Span | None
    spans: tuple[Span | None, ...]

    @property
    def types(self) -> tuple[DataType, ...]:
        """The types of the arguments as they were given."""
        return tuple(expr.type for expr in self.exprs)

    def __len__(self) -> int:
        return len(self.exprs)

    def span_of(self, index: int) -> Span | None:
        """Where the argument stands, or else the call."""
        return self.spans[index] or self.span if index < len(self.spans) else self.span

    def converted(self) -> tuple[Expr, ...]:
        """All arguments, each as its parameter wants it."""
        return tuple(self.argument(index) for index in range(len(self.exprs)))

    def argument(self, index: int) -> Expr:
        """The argument as its parameter wants it."""
        return self.as_(index, self.function.parameter(index).wanted)

    def as_(self, index: int, wanted: Wanted) -> Expr:
        """The argument converted to a type, or checked to be of a family."""
        expr = self.exprs[index]
        if isinstance(wanted, DataType):
            if not converts_without_asking(expr, wanted):
                raise self.error(index, wanted)
            return convert(expr, wanted, span=self.span_of(index))
        if expr.type == NULL:
            return convert(expr, INTEGER)
        if not wanted.holds(expr.type):
            raise self.error(index, wanted)
        return expr

    def constant(self, index: int) -> str:
        """The text of an argument that has to be a constant."""
        parameter = self.function.parameter(index)
        match self.exprs[index]:
            case Literal(str() as text):
                return text
            case _:
                raise BindError(
                    f'argument {index + 1} of "{self.function.name}", {parameter.name}, '
                    "must be a constant text",
                    span=self.span_of(index),
                    hint=self.function.signature,
                )

    def error(self, index: int, wanted: Wanted) -> BindError:
        """The argument has the wrong type."""
        given = self.exprs[index].type
        target = DOUBLE if wanted is Family.NUMBER else wanted
        can_cast = isinstance(target, DataType) and castable(given, target)
        return BindError(
            f'argument {index + 1} of "{self.function.name}" is {given}, not {wanted}',
            span=self.span_of(index),
            hint=f"convert it: CAST(… AS {target})" if can_cast else self.function.signature,
        )


Builder: TypeAlias = Callable[[Arguments], Expr]


def call(
    result: DataType | Callable[[tuple[DataType, ...]], DataType], *, name: str | None = None
) -> Builder:
    """A call with the arguments converted; the result's type may depend on theirs."""

    def build(arguments: Arguments) -> Expr:
        converted = arguments.converted()
        type_ = (
            result
            if isinstance(result, DataType)
            else result(tuple(expr.type for expr in converted))
        )
        return Call(name or arguments.function.name, converted, type_)

    return build


def call_of_common_type(name: str) -> Builder:
    """A call whose arguments and result all have the type common to the arguments."""

    def build(arguments: Arguments) -> Expr:
        spans = tuple(arguments.span_of(index) for index in range(len(arguments)))
        converted = common(arguments.exprs, spans=spans, what=f'the arguments of "{name}"')
        return Call(name, converted, converted[0].type)

    return build
