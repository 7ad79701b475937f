"""Windows: how long each element of a stream stays valid."""
