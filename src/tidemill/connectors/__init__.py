"""Connectors: what streams and relations are read from, and answers written to."""

from tidemill.connectors.callback import CALLBACK
from tidemill.connectors.connector import Connector
from tidemill.connectors.console import CONSOLE
from tidemill.connectors.csv import CSV
from tidemill.connectors.json import JSON
from tidemill.connectors.memory import MEMORY
from tidemill.connectors.parquet import PARQUET
from tidemill.connectors.spark_format import SPARK_FORMAT

__all__ = ["CONNECTORS"]

CONNECTORS: tuple[Connector, ...] = (
    MEMORY,
    PARQUET,
    CSV,
    JSON,
    CONSOLE,
    CALLBACK,
    SPARK_FORMAT,  # last, as it stands for every other name
)
