"""What runs in the process of the session: it starts, follows and stops the pipeline."""
