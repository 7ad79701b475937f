"""Operators on columnar batches: no I/O, no Spark, no loop over rows."""
