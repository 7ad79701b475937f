"""From a logical plan to operators, and from there to better ones."""
