"""Where rows come from, and formats of Spark that they go to."""
