"""Secrets never leave the process: not in listings, errors, representations or failures."""

from __future__ import annotations

import traceback
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException

import tidemill
from tidemill.catalog.listing import describe_entry, show
from tidemill.errors import BindError, ParseError, RunError, Span, TidemillError
from tidemill.lang.parse import parse_script
from tidemill.lang.statements import ConnectorCall, Name, ObjectKind
from tidemill.lang.words import quote_string
from tidemill.masking import is_secret, mask, masked, masked_prose, secrets_of, without_secrets
from tidemill.runtime.spark.driver.failures import telling_failures

NAMES = ["password", "PASSWORD", "sfPassword", '"kafka.sasl.jaas.config"', "secret_key"]
NAMES += ['"account.key"', "apiKey", "oauth_token", '"private-key"', "pwd", "`access.key`"]

# Long and random enough to occur nowhere by chance; with what quoting and URLs make difficult.
core = st.text("abcdefghijkmnopqrstuvwxyz0123456789", min_size=8, max_size=12)
odd = st.text("'\"`;,)(=> -/*@:&%\n\\[]äß漢", max_size=4)


@st.composite
def secrets(draw: st.DrawFn, marks: st.SearchStrategy[str] = odd) -> tuple[str, str]:
    """A secret, and the part of it that must not be seen anywhere."""
    heart = "x" + draw(core)
    return f"{draw(marks)}{heart}{draw(marks)}", heart


in_url = secrets(st.text("'@:%!äß漢", max_size=3))
in_parameter = secrets(st.text("'@:%!,/äß漢", max_size=3))
in_quotes = secrets(st.text("'@:%!;&, /漢", max_size=3))


@st.composite
def options(draw: st.DrawFn) -> tuple[str, str]:
    """An option that holds a secret, as it is written, and what must not be seen."""
    kind = draw(st.sampled_from(["name", "url", "parameter", "quoted"]))
    if kind == "name":
        secret, heart = draw(secrets())
        arrow = draw(st.sampled_from(["=>", " => ", "\n=>\n", " /* c */ => -- d\n "]))
        return f"{draw(st.sampled_from(NAMES))}{arrow}{quote_string(secret)}", heart
    if kind == "url":
        secret, heart = draw(in_url)
        scheme = draw(
            st.sampled_from(["jdbc:postgresql://u:", "http://ann:", "redis://:", "http:/b:"])
        )
        return f"url => {quote_string(f'{scheme}{secret}@host:80/x?a=1')}", heart
    if kind == "parameter":
        secret, heart = draw(in_parameter)
        form = draw(
            st.sampled_from(["jdbc:x://h/d?user=a&password={}&b=1", "x;Pwd={};b", "token={}"])
        )
        return f"url => {quote_string(form.format(secret))}", heart
    secret, heart = draw(in_quotes)
    form = draw(st.sampled_from(['M required user="u" password="{}";', "host=h password='{}' b=1"]))
    text = form.format(secret.replace("'", "") if "'{}'" in form else secret)
    return f'"{draw(st.sampled_from(["config", "conninfo"]))}" => {quote_string(text)}', heart


@st.composite
def scripts(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A script of statements with secrets in their options, and what must not be seen."""
    given = [draw(options()) for _ in range(3)]
    texts = [text for text, _ in given]
    script = (
        f"CREATE STREAM s (a BIGINT, token VARCHAR)\n  SOURCE kafka('t', n => 1, {texts[0]});\n"
        f"CREATE STREAM r (a BIGINT) SOURCE spark('x', {texts[1]}, n => 2);"
        f"CREATE QUERY q INTO jdbc({texts[2]}) AS SELECT a FROM s [NOW] WHERE token = 'b'"
    )
    return script, [heart for _, heart in given]


def assert_unseen(text: str, hearts: list[str]) -> None:
    for heart in hearts:
        assert heart not in text, text


@given(scripts())
def test_what_is_registered_shows_no_secret(case: tuple[str, list[str]]) -> None:
    script, hearts = case
    session = tidemill.connect(engine="spark")
    query = session.sql(script)
    assert_unseen(masked(script), hearts)
    for kind in ObjectKind:
        assert_unseen(str(show(session.catalog, kind)), hearts)
        for entry in session.catalog.entries(kind):
            assert_unseen(repr(entry), hearts)
            assert_unseen(str(describe_entry(entry)), hearts)
    assert_unseen(repr(session.catalog) + repr(query), hearts)
    assert_unseen(repr(parse_script(script)), hearts)
    for mode in ("LOGICAL", "PHYSICAL", "STAGES", "TRACE"):
        assert_unseen(str(session.sql(f"EXPLAIN {mode} SELECT a FROM s [NOW]")), hearts)
    with pytest.raises(BindError, match='the local engine has no connector "kafka"') as caught:
        tidemill.connect().sql(script)
    assert_unseen(f"{caught.value}{caught.value!r}", hearts)


@given(scripts(), st.data())
def test_an_error_at_any_place_shows_no_secret(
    case: tuple[str, list[str]], data: st.DataObject
) -> None:
    script, hearts = case
    start = data.draw(st.integers(0, len(script)))
    end = data.draw(st.integers(start, len(script)))
    error = BindError("it is wrong", span=Span(start, end)).located(script)
    assert_unseen(f"{error}{error!r}", hearts)


def test_a_name_at_the_end_of_a_line_does_not_hide_that_the_next_line_is_secret() -> None:
    text = "'CREATE STREAM s (a BIGINT) SOURCE x(password => 'moonlight', password\n=>\n'sunlight')"
    assert_unseen(masked(text), ["moonlight", "sunlight"])
    commented = text.replace("\n=>\n", " /* c */ => -- d\n")
    assert_unseen(masked(commented), ["moonlight", "sunlight"])


def test_a_value_in_quotes_that_are_not_closed_is_masked_to_its_end() -> None:
    for broken in ("x(c => 'password='';moonlight',' b=1')", """x(c => 'password=";moonlight')"""):
        assert_unseen(masked(broken), ["moonlight"])


@given(scripts(), st.data())
def test_a_script_that_is_broken_anywhere_shows_no_secret(
    case: tuple[str, list[str]], data: st.DataObject
) -> None:
    script, hearts = case
    place = data.draw(st.integers(0, len(script)))
    broken = script[:place]
    how = data.draw(st.sampled_from(["cut", "left out", "put in"]))
    if how == "left out":
        broken += script[place + 1 :]
    elif how == "put in":
        broken += data.draw(st.sampled_from("'\"`()[];,$=>-5x ")) + script[place:]
    session = tidemill.connect()
    try:
        session.sql(broken)
    except TidemillError as error:
        # Where the name of an option or the secret itself is damaged, nobody can tell what it was.
        if _is_harmless(script, place):
            assert_unseen(f"{error}{error!r}", hearts)


def _is_harmless(script: str, place: int) -> bool:
    """Whether the place is not inside of an option with a secret."""
    hidden = mask(script).hidden
    begins = [script.rfind(",", 0, part.start) for part in hidden]
    return all(not (begin < place <= part.end) for begin, part in zip(begins, hidden, strict=True))


@given(scripts(), st.data())
def test_a_caret_stays_below_its_word(case: tuple[str, list[str]], data: st.DataObject) -> None:
    script, _ = case
    words = [
        w for w in ("STREAM", "kafka", "n => 2", "jdbc", "AS SELECT", "token = 'b'") if w in script
    ]
    word = data.draw(st.sampled_from(words))
    start = script.rfind(word) if word == "jdbc" else script.find(word)
    text = str(BindError("it", span=Span(start, start + len(word))).located(script))
    _, line, carets = text.split("\n")
    first, last = carets.find("^"), carets.rfind("^")
    assert line[first : last + 1] == word
    assert int(line.split(" | ")[0]) == script.count("\n", 0, start) + 1


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 1, "   1 | k(password => '***', b => 1)\n       ^"),
        (14, 26, "   1 | k(password => '***', b => 1)\n                     ^^^^^"),
        (17, 18, "   1 | k(password => '***', b => 1)\n                     ^^^^^"),
        (28, 29, "   2 | k(password => '***', b => 1)\n                            ^"),
        (22, 29, "   1 | k(password => '***', b => 1)\n                     ^^^^^^^^"),
    ],
)
def test_a_caret_inside_a_secret_is_below_its_mask(start: int, end: int, expected: str) -> None:
    text = "k(password => 'moon\nlight', b => 1)"
    shown = str(BindError("it", span=Span(start, end)).located(text))
    assert shown == f"it\n{expected}"


def test_the_line_of_an_error_is_that_of_the_text() -> None:
    text = "k(password => 'moon\nlight',\n b => 1)"
    shown = str(BindError("it", span=Span(29, 30)).located(text))
    assert shown == "it\n   3 |  b => 1)\n        ^"


@pytest.mark.parametrize(
    "arguments",
    [
        "password => 'moonlight' 'sunlight9'",
        "password => sunlight9",
        "password = 'sunlight9'",
        "password 'sunlight9'",
        "password => => 'sunlight9'",
        "password => 12sunlight9",
        "servers => 'h, password => 'sunlight9'",
        "password => 'sunlight9",
        'password => "sunlight9"',
        "password => -'sunlight9'",
        "url => 'http://u:sunlight9@h' 'x'",
    ],
)
def test_what_is_written_wrongly_is_masked_too(arguments: str) -> None:
    with pytest.raises(ParseError) as caught:
        tidemill.connect().sql(f"CREATE STREAM s (a BIGINT) SOURCE kafka({arguments})")
    assert "sunlight9" not in f"{caught.value}{caught.value!r}{caught.value.args}"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT token, password FROM s [NOW] WHERE token = 'abc' AND password <> 'x'",
        "CREATE STREAM s (token VARCHAR, pwd VARCHAR) SOURCE memory('a') ORDERED BY at",
        "CREATE RELATION r (k BIGINT) SOURCE memory('a') VALID FROM k KEY (k)",
        "x(path => 's3a://bucket/key', mail => 'ann@host', at => '2026-01-01T10', key => 'k')",
        "x(a => 'abfss://box@account.dfs.core.windows.net/x', b => 'http://host:80/a@b')",
    ],
)
def test_what_is_no_secret_is_shown(text: str) -> None:
    assert masked(text) == text


@pytest.mark.parametrize("name", ["key", "keys", "primary_key", "user", "path", "topic", "bypass"])
def test_other_options_are_no_secrets(name: str) -> None:
    assert not is_secret(name)


def test_a_message_that_quotes_a_url_is_masked() -> None:
    error = RunError('"jdbc:postgresql://ann:moon@host/x?password=sun" failed', hint="token=abc")
    assert str(error) == ('"jdbc:postgresql://ann:***@host/x?password=***" failed\nhint: token=***')


def test_the_secrets_of_a_connector_are_taken_out_of_what_others_say() -> None:
    call = ConnectorCall(
        Name("jdbc"), ("x://u:p''w@h",), (("user", "ann"), ("password", "moon"), ("n", 1))
    )
    assert call.secrets() == {"p''w", "moon"}
    told = RunError("cannot log in as ann with moon at p''w", hint="moon?").hide(call.secrets())
    assert str(told) == "cannot log in as ann with *** at ***\nhint: ***?"
    assert "moon" not in repr(call)


def test_prose_keeps_its_words() -> None:
    text = "unexpected token: found 5, the password is missing; see http://host/a"
    assert masked_prose(text) == text
    assert without_secrets("a man", {"a"}) == "*** man"
    assert secrets_of([("n", 5), ("user", "ann")]) == frozenset()


def test_the_failure_of_a_pipeline_shows_no_secret() -> None:
    said = "Caused by: java.sql.SQLException: no route to x://ann:moonlight@host with sunlight"
    with (
        pytest.raises(RunError, match="Spark stopped") as caught,
        telling_failures(None, None, {"sunlight"}),
    ):
        raise StreamingQueryException(said)
    told = "".join(traceback.format_exception(caught.value))
    assert "x://ann:***@host with ***" in str(caught.value)
    assert "moonlight" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert "The above exception" not in told


@pytest.mark.parametrize(
    "part", ["http://a:b@c ", "password= ", "token: a ", "jdbc:oracle:thin:a/", "p.wd => 'c' \n"]
)
def test_masking_takes_time_in_proportion_to_the_text(part: str) -> None:
    began = perf_counter()
    for text in (f"'{part * 20_000}'", f"'{part * 20_000}", part * 20_000):
        masked(text)
        masked_prose(text)
    assert perf_counter() - began < 20
