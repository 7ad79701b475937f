from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import golden

if TYPE_CHECKING:
    from pathlib import Path

FILE = """\
# the first
plan local
SELECT item

FROM bids
----
Project item
  Source bids

error
SELECT
----
----
first

last
----
----

# says nothing
error
SELECT 1
----
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "some.txt"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture
def _rewriting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "rewriting", True)


@pytest.fixture
def _checking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "rewriting", False)


def test_a_case_has_a_directive_with_arguments(path: Path) -> None:
    first = golden.cases(path)[0]
    assert (first.directive, first.arguments) == ("plan", ("local",))


def test_an_input_may_have_blank_lines(path: Path) -> None:
    assert golden.cases(path)[0].input == "SELECT item\n\nFROM bids"


def test_an_expected_text_ends_at_a_blank_line(path: Path) -> None:
    assert golden.cases(path)[0].expected == "Project item\n  Source bids"


def test_an_expected_text_between_double_rules_may_have_blank_lines(path: Path) -> None:
    assert golden.cases(path)[1].expected == "first\n\nlast"


def test_an_expected_text_may_be_empty(path: Path) -> None:
    assert golden.cases(path)[2].expected == ""


def test_a_case_is_named_by_its_file_and_line(path: Path) -> None:
    assert [str(case) for case in golden.cases(path)] == ["some:2", "some:10", "some:21"]


@pytest.mark.usefixtures("_checking")
def test_an_expected_text_passes(path: Path) -> None:
    golden.check(golden.cases(path)[0], "Project item\n  Source bids")
    assert path.read_text(encoding="utf-8") == FILE


@pytest.mark.usefixtures("_checking")
def test_an_unexpected_text_fails_with_a_diff(path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"-  Source bids\n\+  Source bid$"):
        golden.check(golden.cases(path)[0], "Project item\n  Source bid")
    assert path.read_text(encoding="utf-8") == FILE


@pytest.mark.usefixtures("_rewriting")
def test_rewriting_changes_nothing_but_the_expected_text(path: Path) -> None:
    golden.check(golden.cases(path)[0], "Source bids")
    expected = FILE.replace("Project item\n  Source bids", "Source bids")
    assert path.read_text(encoding="utf-8") == expected


@pytest.mark.usefixtures("_rewriting")
@pytest.mark.parametrize("text", ["", "one", "two\nlines", "a\n\nb", "\nfirst is blank", "----\nx"])
def test_every_case_can_be_rewritten_in_any_order(path: Path, text: str) -> None:
    for case in reversed(golden.cases(path)):
        golden.check(case, text)
    assert [case.expected for case in golden.cases(path)] == [text] * 3


@pytest.mark.usefixtures("_rewriting")
def test_what_was_rewritten_twice_is_the_same_as_once(path: Path) -> None:
    for _ in range(2):
        golden.check(golden.cases(path)[1], "no blank line")
        golden.check(golden.cases(path)[1], "first\n\nlast")
    assert path.read_text(encoding="utf-8") == FILE


@pytest.mark.usefixtures("_rewriting")
def test_a_text_the_format_cannot_hold_is_refused(path: Path) -> None:
    with pytest.raises(AssertionError, match="cannot hold"):
        golden.check(golden.cases(path)[0], "\n----\n----\n")
    assert path.read_text(encoding="utf-8") == FILE


def test_a_case_without_a_rule_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("plan\nSELECT 1\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"some.txt:1: the case has no ----"):
        golden.cases(path)


def test_a_text_that_is_not_closed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("plan\nSELECT 1\n----\n----\nfor ever\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="nothing closes"):
        golden.cases(path)
