"""Operators that look at one row at a time, and converters between forms."""
