"""Project in interval form: the fixture of the paper, constants, and ids."""

from __future__ import annotations

from physical.letters import LETTERS, P1, assert_stream, together
from physical.run import batch, run
from streams import LETTER, equal, text
from tidemill.algebra.expr import Case, Named
from tidemill.model.batch import ID
from tidemill.model.schema import Field, Schema
from tidemill.model.types import VARCHAR
from tidemill.physical.operators.rows.project import Project

RENAMED = Case(
    ((equal(LETTER, text("a")), text("x")), (equal(LETTER, text("b")), text("y"))), LETTER, VARCHAR
)


def test_project_maps_a_to_x_and_b_to_y() -> None:
    project = Project(LETTERS, (Named("letter", RENAMED),))
    assert_stream(run(project, together(P1)), "c[1,8) x[5,11) d[6,14) x[9,10) y[12,17)")


def test_a_constant_has_as_many_rows_as_the_input() -> None:
    project = Project(LETTERS, (Named("letter", text("k")),))
    assert_stream(run(project, together(P1)), "k[1,8) k[5,11) k[6,14) k[9,10) k[12,17)")


def test_columns_can_change_places_and_occur_twice() -> None:
    wide = Schema((Field("p", VARCHAR), Field("q", VARCHAR)))
    project = Project(wide, (Named("p", text("k")), Named("q", LETTER)))
    assert_stream(run(project, together(P1[:2])), "kc[1,8) ka[5,11)")


def test_a_row_without_columns_is_still_a_row() -> None:
    nothing = Project(Schema(()), ())
    (out,) = nothing.on_batch(nothing.new_state(), 0, batch(LETTERS, P1))
    assert out.height == 5


def test_ids_stay() -> None:
    project = Project(LETTERS, (Named("letter", RENAMED),))
    (out,) = project.on_batch(project.new_state(), 0, batch(LETTERS, P1).with_row_index(ID))
    assert out[ID].to_list() == [0, 1, 2, 3, 4]
