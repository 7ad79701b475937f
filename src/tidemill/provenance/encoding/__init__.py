"""How sets of row ids are stored: runs, changes to another set, blocks compressed together."""
