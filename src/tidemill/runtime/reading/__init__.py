"""Files and frames as rows of a stream or relation, piece by piece; one format a file."""
