"""What is registered: streams, relations, queries and functions."""
