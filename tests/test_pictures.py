"""The picture in the tree is the one that the program draws of a real answer."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import golden

if TYPE_CHECKING:
    from collections.abc import Callable

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"


def drawn() -> str:
    picture: Callable[[], str] = runpy.run_path(str(PICTURES / "make_picture.py"))["picture"]
    return picture()


def test_the_picture_is_what_the_program_draws() -> None:
    path = PICTURES / "validity.svg"
    if golden.rewriting:
        path.write_text(drawn(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == drawn(), "run docs/pictures/make_picture.py"


def test_it_has_colours_for_light_and_dark() -> None:
    style = next(ET.fromstring(drawn()).iter("{http://www.w3.org/2000/svg}style"))  # noqa: S314 — our own
    assert style.text is not None
    assert "prefers-color-scheme: dark" in style.text
