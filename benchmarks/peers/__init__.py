"""The same four queries on other systems: Bytewax, Pathway, Flink and Siddhi.

    make peers                         an environment for each in .venv-peers; three gigabytes
    python -m benchmarks.run peers     the table; minutes, and longer on a machine that is busy

The queries are in ``queries``, the systems in ``systems``, and each has a script of its own that
runs in its environment (``bytewax_queries`` and so on; ``stopwatch`` is what they share). A system
that is not installed is left out with a word. No time counts before the rows of its run have been
compared with Tidemill's, and Tidemill's with those of DuckDB, which computes the definition of each
query: a peer that gives another answer is told so in the table, Tidemill would be an error.

What is fair about it. All read the same rows, on the same number of cores, each in the quickest
public way that was found: Flink in SQL and Pathway in its engine, without a row passing through
Python; Siddhi in Java. Each has a run before the first that counts. Tidemill's time includes
reading Parquet, and making of its intervals a row for each window, which is what the others give.

What is unfair to Tidemill. Bytewax and Siddhi get rows that are in memory in their own form, and
leave results there; Pathway has the whole input at once (static mode), not batch by batch.

What is unfair to the peers. Flink reads and writes text, and a job of a second is mostly its
start: it is made for clusters, for input without end, and for state larger than memory, none of
which is asked here. Nor is fault tolerance: none writes a checkpoint. Bytewax, Pathway and Flink
take rows out of order, and Pathway takes them back; ours are in order. Bytewax runs the functions
of its users in Python, which is its purpose; a query that is written in SQL elsewhere costs it
most. Tidemill's column form is at its best with the large batches of this input (a file each,
thirty seconds of the stream); a batch of a few rows costs it a few milliseconds all the same, and
a system that works row by row answers sooner. This is throughput; it says nothing about delay.
Sizes are chosen so that the table is there in minutes; slow ones get less, and are compared with
Tidemill on the same rows. Systems do not take turns, and on a machine that others use a short run
gets through where a long one has to wait: look at the spread, at the load that is told below the
table, and rather at the seconds of the processor, which count all threads of a system and all that
Java compiles meanwhile.
"""
