"""The engine in this process: for tests, notebooks and small jobs."""
