"""The pages fit together: links lead somewhere, the index leads everywhere, the map is the tree."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
PACKAGE = ROOT / "src" / "tidemill"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]

FENCE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


def prose(page: str) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", page)


def links(page: Path) -> list[str]:
    """Where the links of a page lead, those to other sites left out."""
    found = LINK.findall(INLINE.sub("", prose(page.read_text(encoding="utf-8"))))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def anchors(page: str) -> set[str]:
    """The places of a page that a link can name, as GitHub makes them of headings."""
    found: dict[str, int] = {}
    for heading in HEADING.findall(prose(page)):
        word = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found[word] = found.get(word, 0) + 1
    return {
        word if not number else f"{word}-{number}"
        for word, count in found.items()
        for number in range(count)
    }


def broken(page: Path, link: str) -> str | None:
    """What is wrong with a link of a page, if something is."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return f"{link}: there is no such file"
    if not target.is_relative_to(ROOT):
        return f"{link}: it leads out of the project"
    if not anchor:
        return None
    if target.suffix != ".md" or anchor not in anchors(target.read_text(encoding="utf-8")):
        return f"{link}: there is no such heading"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert [wrong for link in links(page) if (wrong := broken(page, link))] == []


def test_the_index_leads_to_every_page() -> None:
    reached, ahead = {INDEX}, [INDEX]
    while ahead:
        page = ahead.pop()
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}
        new = {t for t in targets if t.suffix == ".md" and t.is_relative_to(DOCS)} - reached
        reached |= new
        ahead += new
    assert sorted(set(DOCS.rglob("*.md")) - reached) == []


def test_the_readme_leads_to_the_index() -> None:
    readme = ROOT / "README.md"
    assert INDEX in {(ROOT / link.partition("#")[0]).resolve() for link in links(readme)}


def test_the_readme_begins_with_picture_install_code_and_output() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first = text.partition("\n## ")[0]
    places = [
        first.index(part)
        for part in ("![", "pip install", "```python\nfrom", "session.run()", ">>> ", "│ pen")
    ]
    assert places == sorted(places)
    assert len(first.splitlines()) <= 60, "it fits on a screen"
    assert "make demo" in text
    assert "make test" in text


@pytest.mark.parametrize(
    ("link", "wrong"),
    [
        ("nowhere.md", "no such file"),
        ("README.md#nowhere", "no such heading"),
        ("../../../etc/hostname", "it leads out of the project"),
    ],
)
def test_a_broken_link_is_found(link: str, wrong: str) -> None:
    if wrong.startswith("it leads") and not (DOCS / link).exists():
        link = "../" * len(DOCS.parts)
    found = broken(INDEX, link)
    assert found is not None
    assert wrong in found


def test_links_in_code_are_none(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("`[a](b)` [c](d)\n\n```text\n[e](f)\n```\n", encoding="utf-8")
    assert links(page) == ["d"]


def test_headings_become_anchors() -> None:
    page = (
        "# A page\n\n## CREATE STREAM … AS\n\n```text\n# no heading\n```\n\n## Twice\n\n## Twice\n"
    )
    assert anchors(page) == {"a-page", "create-stream--as", "twice", "twice-1"}


# The map of the folders in CONTRIBUTING.md


def folder_map() -> dict[str, list[tuple[str, str]]]:
    """For each folder of the map, what stands below it: the name, and what is in it."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    block = re.search(r"## The folders\n.*?```text\n(.*?)```", text, re.DOTALL)
    assert block is not None, "CONTRIBUTING.md has a map"
    found: dict[str, list[tuple[str, str]]] = {}
    for line in block[1].splitlines():
        indent, name, words = re.match(r"( *)(\S*) *(.*)", line).groups()  # type: ignore[union-attr]
        if not indent and name:
            found[name] = below = []
        elif len(indent) == 2:
            below.append((name, words))
    return found


def test_the_map_names_every_package_once() -> None:
    packages = {f"{p.parent.relative_to(PACKAGE)}/" for p in PACKAGE.rglob("__init__.py")} - {"./"}
    modules = {p.name for p in PACKAGE.glob("*.py")} - {"__init__.py", "__main__.py"}
    named = [name for name, _ in folder_map()["src/tidemill/"]]
    assert sorted(named) == sorted(packages | modules)


@pytest.mark.parametrize("folder", ["tests/", "docs/"])
def test_the_map_names_every_folder_once(folder: str) -> None:
    there = {f"{p.name}/" for p in (ROOT / folder).iterdir() if p.is_dir()}
    named = [name for name, _ in folder_map()[folder]]
    assert sorted(named) == sorted(name for name in there if name[0] not in "._")


def test_the_map_says_what_is_in_each() -> None:
    silent = [name for below in folder_map().values() for name, words in below if not words]
    assert silent == []
    assert all((ROOT / folder).is_dir() for folder in folder_map())


# What pages name

TREE = [
    p for d in ("src", "tests", "benchmarks", "examples", "docs") for p in (ROOT / d).rglob("*")
]
NAMES = [str(p.relative_to(ROOT)) for p in TREE if p.is_dir() or p.suffix == ".py"]
ROOMS = {p.name for p in PACKAGE.iterdir() if p.is_dir()} | {"src", "tests", "docs", "examples"}


def named_paths(page: Path) -> list[str]:
    """The files and folders of the project that a page names in its prose."""
    code = re.findall(r"`([^`\n]+)`", prose(page.read_text(encoding="utf-8")))
    files = [name for name in code if re.fullmatch(r"[\w./-]+\.py", name)]
    folders = [name.rstrip("/") for name in code if re.fullmatch(r"[\w-]+(/[\w-]+)*/?", name)]
    return files + [name for name in folders if "/" in name and name.split("/")[0] in ROOMS]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        return  # it tells of the past
    ends = {f"/{name}" for name in NAMES}
    missing = [n for n in named_paths(page) if not any(end.endswith(f"/{n}") for end in ends)]
    assert missing == []


STEP = re.compile(r"^\| [^|]+ \| ([^|]+) \| `(\w+)/(\w+)\.py` \| `([\w.]+)` \|$", re.MULTILINE)


def test_the_steps_on_spark_are_where_the_page_says() -> None:
    page = (DOCS / "explanation" / "life-of-a-query.md").read_text(encoding="utf-8")
    steps = STEP.findall(page)
    assert len(steps) > 15
    for process, room, module, function in steps:
        found: object = import_module(f"tidemill.runtime.spark.{room}.{module}")
        for name in function.split("."):
            found = getattr(found, name)
        if room in {"driver", "worker"}:
            assert room in process, f"{function} runs where its folder says"


# Words

WORDS = re.compile(r"^\| ([^|]+) \| [^|]+ \|$", re.MULTILINE)
AVOIDED = re.compile(r"\b(whoever|mend(ed|s)?)\b", re.IGNORECASE)


def test_the_glossary_is_in_order() -> None:
    words = WORDS.findall((DOCS / "explanation" / "glossary.md").read_text(encoding="utf-8"))[2:]
    assert len(words) > 100
    assert words == sorted(set(words), key=str.lower)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_pages_have_plain_words(page: Path) -> None:
    text = prose(page.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if AVOIDED.search(line)]
    assert lines == [], "say who does it, and that it is fixed"


# Commands

OF_SPARK = ("--master",)
COMMANDS = [page for page in PAGES if page.name != "CHANGELOG.md"]


@pytest.mark.parametrize("page", COMMANDS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_with_options_of_spark_say_so(page: Path) -> None:
    """The default engine is ``local``, which refuses these."""
    text = page.read_text(encoding="utf-8")
    written = re.sub(r"\n(?=--)", " ", text)
    for command in re.findall(r"tidemill run (?!\[?FILE)[^`\n]*", written):
        if any(option in command for option in OF_SPARK):
            assert "--engine spark" in command, command
