"""Operators that compare whole rows: set operations and DISTINCT."""
