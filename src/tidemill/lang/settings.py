"""SET adapt = off | advise | on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemill.lang.statements import Adapt, SetAdapt

if TYPE_CHECKING:
    from tidemill.lang.cursor import Cursor

__all__ = ["SET_FORM", "read_set"]

SET_FORM: Final = "write SET adapt = off, SET adapt = advise or SET adapt = on"


def read_set(cursor: Cursor) -> SetAdapt:
    """Read a setting of the session."""
    cursor.expect("SET")
    cursor.expect("ADAPT", hint=f"only adapt can be set: {SET_FORM.removeprefix('write ')}")
    cursor.expect("=", hint=SET_FORM)
    return SetAdapt(Adapt(cursor.choice(adapt.value for adapt in Adapt)))
