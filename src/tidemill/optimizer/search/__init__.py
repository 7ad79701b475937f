"""Search: which of several plans with the same answers is the cheapest."""
