"""The verdict: what a statement does to a query, before it is done.

It says from which instant the answer is exact and what is given until then; what the two versions
have in common, and what begins empty or is replayed; how much is remembered now and when that is
dropped; what a sink gets; and what the other ways of changing would give. It is read as text, as a
frame, as JSON.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.reach import clear
from tidemill.control.alternatives import Alternative, meanwhile_text, other_ways, way_told
from tidemill.control.variants import GUARANTEES
from tidemill.model.time import END_OF_TIME, Time, time_text
from tidemill.optimizer.explain.physical import describe
from tidemill.physical.plan import Apply, walk_physical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.catalog.records import Record
    from tidemill.control.change import Changed
    from tidemill.control.standpoint import Standpoint
    from tidemill.optimizer.planned import Planned

__all__ = ["Alternative", "Stretch", "Verdict", "exact_from", "verdict_on"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a version answers: the instants in ``[since, until)``, of rows from ``fresh`` on.

    Of the streams in ``later``, those from the instant on that stands there.
    """

    version: int
    fresh: Time
    since: Time
    until: Time
    later: tuple[tuple[str, Time], ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a query.

    Attributes:
        query: What it is called.
        does: What is asked for.
        at: The instant of the change; ``None`` if nothing is running that it concerns.
        exact_from: From here on the answer is that of the newest version as if it had always run;
            ``None`` if that cannot be said, or it has stopped.
        meanwhile: What is given between the two.
        stretches: What each version answers.
        shared: The operators that old and new plans have in common.
        new: The operators that begin empty, or are filled with kept rows.
        state: How much is remembered now, and what becomes of it.
        sink: What the sink gets.
        guarantees: What the variant promises; empty for other statements.
        alternatives: What the other variants would give.
        replays: Whether new operators are filled with rows that streams have kept.
        strategy: For another plan, how it takes over.
        why: Why it does so.
    """

    query: str
    does: str
    at: Time | None
    exact_from: Time | None
    meanwhile: str
    stretches: tuple[Stretch, ...]
    shared: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    state: str = ""
    sink: str = ""
    guarantees: dict[str, bool] = field(default_factory=dict)
    alternatives: tuple[Alternative, ...] = ()
    replays: bool = False
    strategy: Alternative | None = None
    why: str = ""

    def text(self) -> str:
        """For people."""
        rows = [
            ("change at", "nothing runs" if self.at is None else time_text(self.at)),
            ("exact from", _exact_text(self.exact_from)),
            ("what is given", self.meanwhile),
        ]
        if self.strategy is not None:
            rows += [(self.strategy.using, self.strategy.meanwhile), ("chosen because", self.why)]
        rows += [(f"version {one.version}", _stretch_text(one)) for one in self.stretches]
        rows += [("shared", line) for line in self.shared]
        begins = "is replayed" if self.replays else "begins empty"
        rows += [(begins, line) for line in self.new]
        rows += [("state", self.state)] if self.state else []
        rows += [("sink", self.sink)] if self.sink else []
        rows += [(name.replace("_", " "), "yes" if v else "no") for name, v in _named(self)]
        width = max(len(title) for title, _ in rows)
        lines = [f"{self.does}", *(f"  {title:<{width}}  {cell}" for title, cell in rows)]
        if self.alternatives:
            lines.append("other ways")
            length = max(len(one.using) for one in self.alternatives)
            for one in self.alternatives:
                exact = "not possible" if one.at is None else _exact_text(one.exact_from)
                lines.append(f"  {one.using:<{length}}  exact from {exact}; {one.meanwhile}")
        return "\n".join(lines)

    def frame(self) -> pl.DataFrame:
        """One row for each variant, the chosen one first."""
        chosen = Alternative(self.does, self.at, self.exact_from, self.meanwhile)
        rows = [(*_cells(one), one is chosen) for one in (chosen, *self.alternatives)]
        types = {"using": pl.String, "at": pl.Int64, "exact_from": pl.Int64}
        types |= {"until_then": pl.String, "chosen": pl.Boolean}
        return pl.DataFrame(rows, schema=types, orient="row")

    def json(self) -> str:
        """For programs."""
        return json.dumps(asdict(self), indent=2)


def verdict_on(  # noqa: PLR0913 — all that it tells
    does: str,
    before: Record,
    changed: Changed,
    here: Standpoint,
    *,
    planned: tuple[Planned, Planned] | None = None,
    state: str = "",
    sink: str = "",
) -> Verdict:
    """The verdict on a statement.

    Args:
        does: What is asked for.
        before: What had become of the query.
        changed: What becomes of it.
        here: What is known.
        planned: The plans of the old and the new version, if both run.
        state: How much is remembered, and what becomes of it.
        sink: What the sink gets.
    """
    record, numbers, using = changed.record, changed.switch, changed.using
    shared, new = _compared(planned)
    return Verdict(
        here.query,
        does,
        changed.at,
        exact_from(record),
        _then(record) if numbers is None else meanwhile_text(numbers),
        tuple(
            Stretch(
                record.version_of(part).number,
                record.instance(part.instance).fresh,
                part.since,
                part.until,
                record.instance(part.instance).later,
            )
            for part in record.parts
        ),
        shared,
        new,
        state,
        sink,
        {} if using is None else asdict(GUARANTEES[using]),
        tuple(other_ways(before, changed, here)),
        replays=_replays(record),
        strategy=way_told(changed.strategies[0], here) if changed.strategies else None,
        why=changed.why,
    )


def _replays(record: Record) -> bool:
    """Whether the instance that answers last is filled with kept rows."""
    last = record.parts[-1] if record.parts else None
    return last is not None and record.instance(last.instance).replays is not None


def exact_from(record: Record) -> Time | None:
    """From when on the answer is that of the newest version as if it had always run."""
    last = record.parts[-1] if record.parts else None
    if last is None or last.until < END_OF_TIME or record.paused is not None:
        return None
    instance = record.instance(last.instance)
    if instance.version != record.current.number:
        return None
    full = Time(0)
    if instance.fresh or instance.later:
        found = clear(record.current.plan, instance.firsts(record.current.plan))
        if found is None:
            return None
        full = found
    others = [part.until for part in record.parts[:-1]]
    return max([last.since, full, *others])


def _then(record: Record) -> str:
    """What is given from now on, where nothing is changed but when the query answers."""
    if record.paused is not None:
        return "what is answered is kept back, and given when the query is resumed"
    last = record.parts[-1] if record.parts else None
    if last is None or last.until < END_OF_TIME:
        return "it answers up to the end of its last part, and nothing after that"
    told = f"it answers from {time_text(last.since)} on"
    others = [part.until for part in record.parts[:-1] if part.until > last.since]
    if not others:
        return told
    return f"{told}, and what was to answer until {time_text(max(others))} does so as well"


def _compared(planned: tuple[Planned, Planned] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The operators that two plans have in common, and those of the second that begin anew."""
    if planned is None:
        return (), ()
    old, new = (list(walk_physical([one.physical])) for one in planned)
    running = {part.fingerprint for part in old}
    shared = [describe(part) for part in new if part.fingerprint in running]
    kept = (part for part in new if isinstance(part, Apply) and part.traits.remembers)
    empty = [describe(part) for part in kept if part.fingerprint not in running]
    return tuple(shared), tuple(empty)


def _named(verdict: Verdict) -> Sequence[tuple[str, bool]]:
    return tuple(verdict.guarantees.items())


def _cells(one: Alternative) -> tuple[str, int | None, int | None, str]:
    return one.using, one.at, one.exact_from, one.meanwhile


def _exact_text(time: Time | None) -> str:
    return "no instant that is known" if time is None else time_text(time)


def _stretch_text(one: Stretch) -> str:
    rows = [f"rows from {time_text(one.fresh)} on"] if one.fresh else []
    rows += [f"those of {name} from {time_text(at)} on" for name, at in one.later]
    given = f" ({', '.join(rows)})" if rows else ""
    end = "on" if one.until == END_OF_TIME else f"to {time_text(one.until)}"
    since = time_text(one.since) if one.since else "the beginning"
    return f"answers from {since} {end}{given}"
