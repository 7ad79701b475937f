from __future__ import annotations

import pytest

from tidemill.algebra.functions.patterns import (
    PatternError,
    check_replacement,
    compile_pattern,
)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)",  # look-around
        "(?i)a",  # flags
        "(?P<n>a)",  # names
        r"(a)\1",  # references back
        "a++",  # possessive repetition
        "a{",
        r"\pL",
        r"[\S]",
        "[[a]]",
        "[a&&b]",
        "[a",
        "*a",
        "(a",
        "a\\",
    ],
)
def test_what_is_not_common_to_all_systems_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_pattern(pattern)


def test_the_end_is_the_end_of_the_text() -> None:
    assert compile_pattern("a$").search("a\n") is None
    assert compile_pattern(r"a\$").search("a$") is not None
    assert compile_pattern("[$]").search("$") is not None


def test_classes_of_characters_are_those_of_ascii() -> None:
    assert compile_pattern(r"\w").search("é") is None
    assert compile_pattern(r"\s").search("\v") is None
    assert compile_pattern(r"[\s]").search("\v") is None
    assert compile_pattern(r"^\S$").search("\v") is not None


def test_repetitions_can_be_counted_and_reluctant() -> None:
    found = compile_pattern(r"a{2,3}?").search("aaaa")
    assert found is not None
    assert found[0] == "aa"


@pytest.mark.parametrize("replacement", [r"\1", r"\x", "\\"])
def test_a_replacement_refers_to_groups_that_exist(replacement: str) -> None:
    with pytest.raises(PatternError):
        check_replacement(replacement, 0)
    check_replacement(r"\0 \\1", 0)
