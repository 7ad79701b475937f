"""The operators, by what they do; those of both forms beside each other."""
