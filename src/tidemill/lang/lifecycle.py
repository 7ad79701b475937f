"""ALTER, START, STOP, PAUSE and RESUME QUERY.

The query of ALTER QUERY ends where the USING or the AT of the statement begins. AT is no reserved
word, but outside of brackets it is an alias there only behind AS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from tidemill.errors import closest
from tidemill.lang.embedded import read_embedded_query
from tidemill.lang.instants import INSTANT_HINT, begins_instant, read_instant
from tidemill.lang.keeping import accept_provenance
from tidemill.lang.statements import (
    AlterProvenance,
    AlterQuery,
    Change,
    Instant,
    Lifecycle,
    Migration,
    Name,
    PauseQuery,
    ReplanQuery,
    ResumeQuery,
    StartMode,
    StartQuery,
    StopMode,
    StopQuery,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from enum import Enum

    from tidemill.lang.cursor import Cursor

    E = TypeVar("E", bound=Enum)

__all__ = ["LIFECYCLE_FORMS", "at_lifecycle", "read_lifecycle"]

LIFECYCLE_FORMS: Final = {
    "ALTER": (
        "write ALTER QUERY name AS query [USING variant] [AT instant],"
        " or ALTER QUERY name REPLAN"
        " [USING GENMIG | REPLAY | MOVING STATE | PARALLEL TRACK | AUTO]"
    ),
    "START": "write START QUERY name [FRESH | COLD | WARM | WITH HISTORY] [AT instant]",
    "STOP": "write STOP QUERY name [IMMEDIATE | DRAIN] [AT instant]",
    "PAUSE": "write PAUSE QUERY name [IMMEDIATE | DRAIN]",
    "RESUME": "write RESUME QUERY name [WARM | COLD | FRESH]",
}
"""How these statements are written, by their first word."""

_OTHERS: Final = ("STREAM", "RELATION", "FUNCTION")


def at_lifecycle(cursor: Cursor) -> bool:
    """Whether one of these statements comes next, and not a name alone."""
    return cursor.peek(1) is not None and cursor.at_any(LIFECYCLE_FORMS)


def read_lifecycle(cursor: Cursor) -> Lifecycle:
    """Read one of these statements."""
    word = cursor.choice(LIFECYCLE_FORMS)
    other = next((kind for kind in _OTHERS if cursor.at(kind)), None)
    if other is not None and word == "ALTER":
        cursor.fail(
            "only queries can be altered",
            hint=f"DROP {other}, then CREATE {other} again; write ALTER QUERY for a query",
        )
    cursor.expect("QUERY", hint=LIFECYCLE_FORMS[word])
    if cursor.at("AT") and begins_instant(cursor, 1):
        cursor.fail_expected("the name of the query")
    return _READERS[word](cursor, cursor.name("the name of the query"))


def _read_alter(cursor: Cursor, name: Name) -> AlterQuery | ReplanQuery | AlterProvenance:
    if cursor.accept("REPLAN"):
        return _read_replan(cursor, name)
    if cursor.at_any(("WITH", "WITHOUT")):
        return _read_provenance(cursor, name)
    if not cursor.accept("AS"):
        if cursor.at("INTO"):
            cursor.fail("the sink of a query stays as it is", hint="leave INTO out")
        near = closest(cursor.current.text, ["REPLAN"]) if cursor.current else None
        cursor.fail_expected("AS or REPLAN", hint=near or "write the query after AS")
    query = read_embedded_query(cursor, before=("USING", "AT"))
    using = _read_variant(cursor) if cursor.accept("USING") else None
    if cursor.at("AT") and not begins_instant(cursor, 1):
        cursor.expect("AT")
        hint = f"{INSTANT_HINT}; an alias of the query that is called at is written AS at"
        cursor.fail_expected("an instant", hint=hint)
    at = _read_at(cursor)
    if cursor.at("USING"):
        cursor.fail("USING stands before AT", hint="ALTER QUERY name AS query USING variant AT …")
    return AlterQuery(name, query, using, at)


def _read_provenance(cursor: Cursor, name: Name) -> AlterProvenance:
    if cursor.accept("WITHOUT"):
        cursor.expect("PROVENANCE", hint="write ALTER QUERY name WITHOUT PROVENANCE")
        return AlterProvenance(name)
    provenance = accept_provenance(cursor, stop=("AT",))
    _refuse_at(cursor, "WITH PROVENANCE", "it begins at the first instant at which it is exact")
    return AlterProvenance(name, provenance)


def _read_variant(cursor: Cursor) -> Change:
    for migration in Migration:
        if cursor.at(*migration.value.split()):
            cursor.fail(
                f"{migration.value} is for another plan of the same query",
                hint=f"write ALTER QUERY name REPLAN USING {migration.value}",
            )
    found = _accept_one(cursor, tuple(Change))
    if found is not None:
        return found
    _expect_second(cursor, (Change.QUERY_ORDER, Change.STREAM_ORDER))
    return _fail_choice(cursor, [variant.value for variant in Change])


def _expect_second(cursor: Cursor, variants: Sequence[Enum]) -> None:
    """Refuse the first of two words alone."""
    for variant in variants:
        first, second = variant.value.split()
        if cursor.accept(first):
            cursor.expect(second, hint=f"write USING {variant.value}")


def _read_replan(cursor: Cursor, name: Name) -> ReplanQuery:
    using = None
    if cursor.accept("USING"):
        using = _accept_one(cursor, tuple(Migration))
        if using is None:
            _expect_second(cursor, (Migration.MOVING_STATE, Migration.PARALLEL_TRACK))
            *first, last = (str(one.value) for one in Migration)
            near = closest(cursor.current.text, [*first, last]) if cursor.current else None
            hint = near or "the variants of a change are for ALTER QUERY name AS query"
            cursor.fail_expected(f"{', '.join(first)} or {last}", hint=hint)
    _refuse_at(cursor, "REPLAN", "the switch is at the first instant at which both plans agree")
    return ReplanQuery(name, using)


def _read_start(cursor: Cursor, name: Name) -> StartQuery:
    mode = _read_mode(cursor, tuple(StartMode), may_follow=("AT",))
    return StartQuery(name, mode, _read_last_at(cursor, tuple(StartMode)))


def _read_stop(cursor: Cursor, name: Name) -> StopQuery:
    mode = _read_mode(cursor, tuple(StopMode), may_follow=("AT",))
    return StopQuery(name, mode, _read_last_at(cursor, tuple(StopMode)))


def _read_pause(cursor: Cursor, name: Name) -> PauseQuery:
    hint = "it is paused at once; STOP QUERY stops it at an instant"
    _refuse_at(cursor, "PAUSE", hint)
    mode = _read_mode(cursor, tuple(StopMode))
    _refuse_at(cursor, "PAUSE", hint)
    return PauseQuery(name, mode)


def _read_resume(cursor: Cursor, name: Name) -> ResumeQuery:
    hint = "it goes on where it was paused; START QUERY starts one at an instant"
    _refuse_at(cursor, "RESUME", hint)
    mode = _read_mode(cursor, (StartMode.WARM, StartMode.COLD, StartMode.FRESH))
    _refuse_at(cursor, "RESUME", hint)
    return ResumeQuery(name, mode)


def _read_mode(cursor: Cursor, modes: Sequence[E], *, may_follow: Sequence[str] = ()) -> E | None:
    """Read a mode, which may be missing."""
    found = _accept_one(cursor, modes)
    if found is None and cursor.current is not None and not cursor.at_any(may_follow):
        words = [str(mode.value) for mode in modes]
        _fail_choice(cursor, [*words, *may_follow], "the end of the statement")
    return found


def _read_last_at(cursor: Cursor, modes: Sequence[Enum]) -> Instant | None:
    at = _read_at(cursor)
    mode = next((mode.value for mode in modes if cursor.at(mode.value)), None)
    if at is not None and mode is not None:
        cursor.fail(f"{mode} stands before AT")
    return at


def _read_at(cursor: Cursor) -> Instant | None:
    return read_instant(cursor) if cursor.accept("AT") else None


def _refuse_at(cursor: Cursor, statement: str, hint: str) -> None:
    if cursor.at("AT"):
        cursor.fail(f"{statement} takes no AT", hint=hint)


def _accept_one(cursor: Cursor, variants: Sequence[E]) -> E | None:
    """The variant whose words come next, the one with the most words if there are several."""
    for variant in sorted(variants, key=lambda variant: -len(variant.value.split())):
        if cursor.accept(*variant.value.split()):
            return variant
    return None


def _fail_choice(cursor: Cursor, words: Sequence[str], *ends: str) -> NoReturn:
    *first, last = (*words, *ends)
    near = closest(cursor.current.text.upper(), words) if cursor.current else None
    cursor.fail_expected(f"{', '.join(first)} or {last}", hint=near)


_READERS: Final[dict[str, Callable[[Cursor, Name], Lifecycle]]] = {
    "ALTER": _read_alter,
    "START": _read_start,
    "STOP": _read_stop,
    "PAUSE": _read_pause,
    "RESUME": _read_resume,
}
