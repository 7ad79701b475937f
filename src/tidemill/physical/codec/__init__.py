"""Physical plans as JSON: sent to workers, kept in checkpoints, hashed for fingerprints."""
