"""The operators in interval form: an element carries ``[start, end)`` and is never taken back."""
