"""What lasts: the checkpoint, and the state of partitions at rest."""
