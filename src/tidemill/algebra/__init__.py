"""The logical algebra: what a query means, and nothing about how it is run."""
