"""Aggregation, as a whole and in parts."""
