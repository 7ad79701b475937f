"""What flows: time, types, schemas."""
