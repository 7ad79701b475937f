"""What runs in Spark's Python workers, and what is sent to them."""
