"""How plans take over from plans: what that takes, and what the literature does otherwise."""
