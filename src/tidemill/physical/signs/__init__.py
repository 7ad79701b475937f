"""What operators in signed form are made of: net changes, and what has become of rows."""
