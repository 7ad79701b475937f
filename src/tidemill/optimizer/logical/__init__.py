"""From a logical plan to a better one with the same answers."""
