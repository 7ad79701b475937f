"""The four queries on Siddhi.

In and out: events are Java objects in arrays, made before the clock starts; results go to a table
in Siddhi's memory, which is read after the clock has stopped. So Siddhi neither reads nor writes
files, and no row of a result passes through Python. The jars are those that PySiddhi ships, driven
with JPype, since PySiddhi itself hands over each event and each result one by one in Python.

Time is that of the events (``@app:playback``), whole milliseconds. Siddhi 5.1 has no hopping
window, and its ``output snapshot every`` gives nothing in a playback. So ``time(60 sec)`` windows
keep the current sums in a table, and a second stream, a tick a millisecond before
each whole second, gives what is in it. Windows are joined by looking at all rows of the other
one; indexed tables that hold what the windows do are the quicker way, and the one taken here.
One thread, that of the caller.
"""

from __future__ import annotations

import re
from heapq import merge
from importlib.metadata import files
from operator import itemgetter
from typing import TYPE_CHECKING

import jpype
import pyarrow as pa
from jpype import JArray, JClass, JDouble, JLong, JObject

from benchmarks.peers.stopwatch import Run, Task, Took, main, read, took

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    Sent: TypeAlias = tuple[int, str, tuple[object, ...]]
    """When, to which stream, and the values."""

SECOND = 1_000_000
MILLISECOND = 1_000

FILTER = """
    define stream s (key long, value double, time long);
    define table found (key long, v double, time long);
    from s[value > 50] select key, value * 2 as v, time insert into found;
"""

SUM = """
    define stream s (key long, value double);
    define stream tick (until long);
    @PrimaryKey('key') define table now (key long, v double);
    define table found (key long, v double, until long);
    from s#window.time(60 sec) select key, sum(value) as v, count() as n group by key
        insert all events into changed;
    from changed[n > 0L] select key, v update or insert into now on now.key == key;
    from changed[n == 0L] select key delete now on now.key == key;
    from tick join now select now.key as key, now.v as v, tick.until as until insert into found;
"""

DISTINCT = """
    define stream s (key long, value double);
    define stream tick (until long);
    @PrimaryKey('key') define table now (key long);
    define table found (key long, until long);
    from s#window.time(60 sec) select key, count() as n group by key
        insert all events into changed;
    from changed[n == 1L] select key update or insert into now on now.key == key;
    from changed[n == 0L] select key delete now on now.key == key;
    from tick join now select now.key as key, tick.until as until insert into found;
"""

JOIN = """
    define stream a (key long, value double, id long);
    define stream b (key long, value double, id long);
    @PrimaryKey('id') @Index('key') define table near_a (key long, value double, id long);
    @PrimaryKey('id') @Index('key') define table near_b (key long, value double, id long);
    define table found (key long, x double, y double);
    from a#window.time(60 sec) select id insert expired events into gone_a;
    from b#window.time(60 sec) select id insert expired events into gone_b;
    from gone_a delete near_a on near_a.id == id;
    from gone_b delete near_b on near_b.id == id;
    from a join near_b on a.key == near_b.key
        select a.key as key, a.value as x, near_b.value as y insert into found;
    from b join near_a on b.key == near_a.key
        select b.key as key, near_a.value as x, b.value as y insert into found;
    from a insert into near_a;
    from b insert into near_b;
"""

QUERIES = {
    "filter": (FILTER, ("key", "v", "at")),
    "sum": (SUM, ("key", "v", "until")),
    "distinct": (DISTINCT, ("key", "until")),
    "join": (JOIN, ("key", "x", "y")),
}
"""The text and the columns of each."""


def start() -> None:
    """Start Java with the jars of PySiddhi."""
    jars = [file for file in files("PySiddhi") or () if file.suffix == ".jar"]
    jpype.startJVM(classpath=[str(jar.locate()) for jar in jars])


def rows_of(task: Task) -> Iterator[Sent]:
    """The rows of all streams, and the ticks between them, in the order of time."""
    streams = []
    for name in task.streams:
        table = read(task.folder / name).to_pydict()
        rows = zip(*table.values(), strict=True)
        streams.append(_sent(task.query, name, rows))
    if task.query in ("sum", "distinct"):
        times = read(task.folder / "s")["at"]
        first, last = times[0].as_py() // SECOND, times[-1].as_py() // SECOND
        untils = range(first + 1, last + 61)
        streams.append((until * 1_000 - 1, "tick", (JLong(until * SECOND),)) for until in untils)
    return merge(*streams, key=itemgetter(0))


def _sent(query: str, name: str, rows: Iterator[tuple[int, float, int]]) -> Iterator[Sent]:
    for number, (key, value, at) in enumerate(rows):
        values: tuple[object, ...] = (JLong(key), JDouble(value))
        if query == "filter":
            values += (JLong(at),)
        if query == "join":
            values += (JLong(number),)
        yield at // MILLISECOND, name, values


def batches(task: Task) -> list[tuple[str, object]]:
    """The events as they are sent: all up to a tick at once, and one by one for the join.

    Time jumps to the end of a batch before its first event is seen: between ticks nobody looks, but
    a pair of the join would be missed.
    """
    event = JClass("io.siddhi.core.event.Event")
    found: list[tuple[str, object]] = []
    waiting: list[object] = []
    for at, name, values in rows_of(task):
        new = event(JLong(at), JArray(JObject)(values))
        if name == "s":
            waiting.append(new)
            continue
        if waiting:
            found.append(("s", JArray(event)(waiting)))
            waiting = []
        found.append((name, new))
    return [*found, ("s", JArray(event)(waiting))] if waiting else found


def table_of(columns: tuple[str, ...], events: object) -> pa.Table:
    """The results as a table, by way of the text that Java makes of them."""
    text = str(JClass("java.util.Arrays").toString(events))
    rows = [row.split(", ") for row in re.findall(r"data=\[(.*?)\]", text)]
    types = [pa.float64() if name in ("v", "x", "y") else pa.int64() for name in columns]
    values = zip(*rows, strict=True)
    arrays = [pa.array(value).cast(type_) for value, type_ in zip(values, types, strict=True)]
    return pa.table(arrays, columns)


def prepare(task: Task) -> Run:
    """The events as Java objects."""
    start()
    text, columns = QUERIES[task.query]
    sent = batches(task)
    manager = JClass("io.siddhi.core.SiddhiManager")()

    def run() -> tuple[Took, pa.Table]:
        app = manager.createSiddhiAppRuntime(f"@app:playback {text}")
        app.start()
        send = {name: app.getInputHandler(name).send for name, _ in sent}

        def send_all() -> None:
            for name, events in sent:
                send[name](events)

        time = took(send_all)
        found = table_of(columns, app.query("from found select *"))
        app.shutdown()
        return time, found

    return run


if __name__ == "__main__":
    main(prepare)
