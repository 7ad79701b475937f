"""Measuring: what is found out of streams, relations and conditions while queries run."""
