"""What aggregates are made of: groups, counters, and what they keep of values."""
