"""From syntax and catalog to the algebra: every name found, every type checked."""
