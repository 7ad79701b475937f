"""What Spark is told where all of it runs on this host."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from spark.on_spark import MASTER
from tidemill.runtime.spark.cluster import open_cluster
from tidemill.runtime.spark.this_host import sockets


@pytest.mark.spark
def test_java_reaches_its_workers_through_the_file_system() -> None:
    spark = open_cluster(MASTER, "2g").spark
    directory = Path(str(spark.conf.get("spark.python.unix.domain.socket.dir")))
    assert spark.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3
    assert any(file.is_socket() for file in directory.iterdir())


def test_a_socket_with_a_long_name_is_one_of_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("deep" * 20)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    assert sockets() == {}
