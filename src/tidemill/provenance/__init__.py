"""Provenance: which rows a row was made of, why it came or went, and why one is not there."""
