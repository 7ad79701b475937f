"""The process that Spark forks its Python workers from, with all that they need already there.

Without it every worker imports for seconds before its first task. Besides, Spark has each worker
do two things at every task: collect garbage, which goes through all that was imported, so that is
set aside before the first fork; and forget what it knows of the places modules come from, so that
the archive of PySpark's own sources is read again, unless PySpark comes from where it is installed.

Nothing may be computed before a fork: the threads of Polars or Arrow would not survive it.
"""

from __future__ import annotations

import gc
import re
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path

__all__ = ["main"]

_NEEDED = (
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.stateful_processor_api_client",
    "pyspark.sql.streaming.stateful_processor_util",
    "tidemill.runtime.spark.worker.processor",
    "tidemill.runtime.spark.worker.stepping",
    "tidemill.runtime.spark.io.sources",
)


def main() -> None:
    """Fork a worker whenever Spark asks for one."""
    _leave_archives()
    for module in _NEEDED:
        import_module(module)
    gc.collect()
    gc.freeze()
    import_module("pyspark.daemon").manager()


def _leave_archives() -> None:
    """Take PySpark from where it is installed, if it is, and not from archives on the path."""
    own = re.compile(r"(pyspark|py4j-.*-src)\.zip")
    places = [place for place in sys.path if not own.fullmatch(Path(place).name)]
    if all(PathFinder.find_spec(name, places) for name in ("pyspark", "py4j")):
        for place in set(sys.path) - set(places):
            sys.path_importer_cache.pop(place, None)
        sys.path[:] = places


if __name__ == "__main__":
    main()
