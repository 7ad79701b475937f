"""Options for the settings of planning: one table, for every command that plans queries."""

from __future__ import annotations

import inspect
import math
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from tidemill.cli.terminal import reporting_errors
from tidemill.planning import CHOICES, SETTINGS, Planning

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OPTIONS", "takes_planning"]

_TECHNIQUE, _JOINS, _NEGATION, _SPREAD = (
    StrEnum(setting, {choice.upper(): choice for choice in CHOICES[setting]})
    for setting in ("technique", "joins", "negation", "spread")
)

_option = partial(typer.Option, rich_help_panel="Planning, for experts: no answer depends on it")

OPTIONS: dict[str, object] = {
    "optimize": Annotated[
        bool, _option(help="Whether plans are rewritten before they run.", show_default=False)
    ],
    "max_delay": Annotated[
        float,
        _option(
            min=0,
            help="Seconds of the streams' time for which a result that does not change may be held "
            "back from further operators; inf for ever.",
        ),
    ],
    "technique": Annotated[_TECHNIQUE, _option(help="How plans represent the expiry of rows.")],
    "joins": Annotated[
        _JOINS, _option(help="Whether joins of joins remember intermediate results.")
    ],
    "negation": Annotated[
        _NEGATION, _option(help="Where NOT EXISTS and NOT IN are computed, beside joins.")
    ],
    "spread": Annotated[
        _SPREAD, _option(help="Whether rows go to all partitions by their keys, or to one.")
    ],
    "lazy": Annotated[
        float,
        _option(
            min=0,
            help="With --joins multiway, seconds of the streams' time from one join to the next; "
            "0 for at once.",
        ),
    ],
    "constants": Annotated[
        Path | None,
        _option(
            exists=True,
            dir_okay=False,
            help="The file with what operators cost on this machine, by tidemill calibrate.",
            show_default=False,
        ),
    ],
}
"""The options, by the names of the settings."""


def takes_planning(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each setting; it gets all of them as ``planning``."""
    hints = get_type_hints(command, include_extras=True)
    own = inspect.signature(command).parameters.values()
    others = [p.replace(annotation=hints[p.name]) for p in own if p.name != "planning"]
    usual = Planning()
    added = [
        inspect.Parameter(
            setting,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(usual, setting),
            annotation=OPTIONS[setting],
        )
        for setting in SETTINGS
    ]

    def carry_out(**given: Any) -> None:  # noqa: ANN401 — whatever typer has read
        with reporting_errors():
            planning = _planning({setting: given.pop(setting) for setting in SETTINGS})
        command(planning=planning, **given)

    parameters = [*others, *added]
    carry_out.__name__, carry_out.__doc__ = command.__name__, command.__doc__
    carry_out.__annotations__ = {p.name: p.annotation for p in parameters}
    carry_out.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return carry_out


def _planning(given: dict[str, Any]) -> Planning:
    for setting in CHOICES:
        given[setting] = str(given[setting])
    if given["max_delay"] == math.inf:
        given["max_delay"] = None
    return Planning(**given)
