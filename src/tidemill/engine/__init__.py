"""The engine: one partition's part of the operator graph of all running queries."""
