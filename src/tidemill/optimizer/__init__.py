"""From the plan a query means to a better plan with the same answers."""
