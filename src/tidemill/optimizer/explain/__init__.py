"""EXPLAIN: a planned query as text, or as JSON, from what it means to where it runs."""
