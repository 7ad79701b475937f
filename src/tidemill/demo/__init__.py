"""The demonstration: an auction site, five queries over it, and how their answers are checked."""
