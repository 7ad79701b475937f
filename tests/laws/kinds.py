"""Every kind of operator that hands over its state, with what comes to it, drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from hypothesis import strategies as st

from laws.aggregations import COUNT, DELAYS, SAMPLE, aggregations, sample_rows
from laws.test_join_operator import CONDITIONS as OF_TWO
from laws.test_join_operator import LEFT_PAIR, RIGHT_PAIR
from laws.test_join_operator import NAMES as NAMES2
from laws.test_multi_join import CONDITIONS as OF_THREE
from laws.test_multi_join import NAMES as NAMES3
from laws.test_multi_join import ORDERS3
from laws.test_multi_join import PAIR as ONE_OF_THREE
from physical.run import schedules
from streams import call
from tidemill.algebra.expr import Column, Literal
from tidemill.algebra.plan import NamedAggregate
from tidemill.model.batch import Form
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, VARCHAR
from tidemill.physical import interval, signed
from tidemill.physical.interval import EAGER, Change, Multiplicity

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

    from physical.run import Schedule
    from tidemill.physical.operator import Operator

__all__ = ["KINDS", "Case", "joins"]

Case: TypeAlias = "tuple[Operator, Schedule]"

PAIR = Schema((Field("a", BIGINT), Field("b", VARCHAR)))
OTHER = Schema((Field("c", BIGINT), Field("d", VARCHAR)))
FORMS = st.sampled_from(Form)


@st.composite
def joins(draw: DrawFn, form: Form) -> Case:
    condition = draw(OF_TWO)
    schedule = draw(schedules(LEFT_PAIR, RIGHT_PAIR, forms=(form, form)))
    if form is Form.SIGNED:
        return signed.Join(LEFT_PAIR, RIGHT_PAIR, NAMES2, condition), schedule
    orderly = draw(st.tuples(st.booleans(), st.booleans()))
    return interval.Join(LEFT_PAIR, RIGHT_PAIR, NAMES2, condition, orderly), schedule


@st.composite
def joins_of_three(draw: DrawFn, form: Form) -> Case:
    condition, orders = draw(OF_THREE), draw(st.sampled_from(ORDERS3))
    inputs = (ONE_OF_THREE,) * 3
    schedule = draw(schedules(*inputs, forms=(form,) * 3))
    if form is Form.SIGNED:
        return signed.MultiJoin(inputs, NAMES3, condition, orders), schedule
    expiration = draw(st.sampled_from((EAGER, 1, 3, 5)))
    join = interval.MultiJoin(inputs, NAMES3, condition, orders, expiration=expiration)
    return join, schedule


@st.composite
def countings(draw: DrawFn, form: Form) -> Case:
    function = draw(st.sampled_from(Multiplicity))
    inputs = (PAIR,) if function is Multiplicity.DISTINCT else (PAIR, OTHER)
    schedule = draw(schedules(*inputs, forms=tuple(draw(FORMS) for _ in inputs)))
    if form is Form.SIGNED:
        return signed.Counting(function, inputs, PAIR), schedule
    return interval.Counting(function, inputs, PAIR, draw(DELAYS)), schedule


@st.composite
def aggregates(draw: DrawFn, takes: Form, form: Form) -> Case:
    drawn = draw(aggregations())
    schedule = draw(schedules(SAMPLE, rows={0: sample_rows()}, forms=(takes,)))
    kind = signed.Aggregate if form is Form.SIGNED else interval.Aggregate
    delay = None if form is Form.SIGNED else drawn.max_delay
    made = kind(
        drawn.keys,
        (*drawn.aggregates, NamedAggregate("rows", COUNT)),
        SAMPLE,
        Schema((*drawn.schema, Field("rows", BIGINT))),
        panes=drawn.panes,
        max_delay=delay,
        takes=takes,
    )
    return made, schedule


@st.composite
def row_windows(draw: DrawFn, form: Form) -> Case:
    rows, slide = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    by = draw(st.sampled_from(((), ("a",), ("a", "b"))))
    one = call("=", Column("a", BIGINT), Literal(1, BIGINT))
    unless = draw(st.sampled_from((None, one))) if rows == slide == 1 else None
    kind = signed.RowWindow if form is Form.SIGNED else interval.RowWindow
    delay = None if form is Form.SIGNED else draw(DELAYS)
    window = kind(PAIR, rows, slide, by, draw(st.booleans()), delay, unless)
    return window, draw(schedules(PAIR, lengths=(1,)))


@st.composite
def session_windows(draw: DrawFn, form: Form) -> Case:
    by = draw(st.sampled_from(((), ("a",), ("a", "b"))))
    kind = signed.SessionWindow if form is Form.SIGNED else interval.SessionWindow
    delay = None if form is Form.SIGNED else draw(DELAYS)
    window = kind(PAIR, draw(st.integers(1, 4)), by, delay)
    return window, draw(schedules(PAIR, lengths=(1,)))


@st.composite
def streams_of_changes(draw: DrawFn) -> Case:
    schedule = draw(schedules(PAIR, forms=(draw(FORMS),)))
    return interval.Changes(draw(st.sampled_from(Change)), PAIR), schedule


DISTINCT = schedules(PAIR).map(lambda schedule: (interval.Distinct(PAIR), schedule))
TO_INTERVALS = st.tuples(
    DELAYS.map(lambda delay: signed.ToIntervals(PAIR, delay)),
    schedules(PAIR, forms=(Form.SIGNED,)),
)

KINDS: dict[str, SearchStrategy[Case]] = {
    "join": joins(Form.INTERVAL),
    "signed join": joins(Form.SIGNED),
    "join of three": joins_of_three(Form.INTERVAL),
    "signed join of three": joins_of_three(Form.SIGNED),
    "distinct": DISTINCT,
    "counting": countings(Form.INTERVAL),
    "signed counting": countings(Form.SIGNED),
    "aggregate": aggregates(Form.INTERVAL, Form.INTERVAL),
    "aggregate of changes": aggregates(Form.SIGNED, Form.INTERVAL),
    "signed aggregate": aggregates(Form.INTERVAL, Form.SIGNED),
    "signed aggregate of changes": aggregates(Form.SIGNED, Form.SIGNED),
    "row window": row_windows(Form.INTERVAL),
    "signed row window": row_windows(Form.SIGNED),
    "session window": session_windows(Form.INTERVAL),
    "signed session window": session_windows(Form.SIGNED),
    "changes": streams_of_changes(),
    "to intervals": TO_INTERVALS,
}
