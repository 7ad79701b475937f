"""What joins are made of: conditions, sides, keys, pairs, probes."""
