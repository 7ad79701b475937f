"""History: the rows that streams keep, and how they are given once more."""
