"""What Spark is told where all of it runs on this host."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from pyspark import SparkContext

from spark.on_spark import MASTER
from tidemill.runtime.spark.driver.cluster import open_cluster
from tidemill.runtime.spark.driver.this_host import sockets


@pytest.mark.spark
def test_java_reaches_its_workers_through_the_file_system() -> None:
    spark = open_cluster(MASTER, "2g").spark
    directory = Path(str(spark.conf.get("spark.python.unix.domain.socket.dir")))
    assert spark.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3
    assert any(file.is_socket() for file in directory.iterdir())


@pytest.mark.spark
def test_nobody_else_on_the_network_can_talk_to_it() -> None:
    spark = open_cluster(MASTER, "2g").spark
    assert spark.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3
    gateway = SparkContext._gateway  # noqa: SLF001 — who else knows the process
    assert gateway is not None
    listening: list[IPv4Address | IPv6Address] = []
    for pid in family(gateway.proc.pid):
        try:
            listening += listens(pid)
        except (FileNotFoundError, ProcessLookupError):
            assert has_ended(pid), "only workers that Spark has ended meanwhile listen to nothing"
    assert listening, "Java listens to Python"
    assert all(address.is_loopback for address in listening), listening


def family(pid: int) -> list[int]:
    """A process and all that it has started."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children: list[str] = []
    for file in tasks:
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            children += file.read_text(encoding="ascii").split()
    return [pid, *(found for child in children for found in family(int(child)))]


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or only its number is left."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in ("Z", "X")


def listens(pid: int) -> list[IPv4Address | IPv6Address]:
    """The addresses of the network at which a process takes connections."""
    own: set[str] = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            own.add(file.readlink().name)
    found: list[IPv4Address | IPv6Address] = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in own:
                found.append(_address(local.partition(":")[0]))
    return found


def _address(text: str) -> IPv4Address | IPv6Address:
    """An address as the kernel writes it: words of four bytes, the last byte first."""
    words = [bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8)]
    if len(words) == 1:
        return IPv4Address(words[0])
    whole = IPv6Address(b"".join(words))
    return whole.ipv4_mapped or whole


def test_a_socket_with_a_long_name_is_one_of_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("deep" * 20)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    assert sockets() == {}
