"""What all benchmarks have in common: how they measure, and how they tell what they have found."""
