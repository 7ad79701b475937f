"""Estimates of a physical plan: what flows on each edge, and what each operator remembers."""
