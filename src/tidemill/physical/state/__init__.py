"""State: what operators remember, as immutable segments of columns."""
