"""Joins of two and of many inputs."""
