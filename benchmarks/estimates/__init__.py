"""Estimates beside what was measured: of NEXMark's queries, and of stars and chains of joins."""
