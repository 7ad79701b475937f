"""Tidemill: continuous SQL queries with sliding windows, exact at every instant."""
