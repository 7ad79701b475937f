"""Migration: how another plan of the same meaning takes over what one remembers."""
