"""Runtimes: what runs the engine, and what both of them share: sinks, answers, files."""
