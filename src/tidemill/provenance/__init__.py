"""Provenance: which rows of the streams a row of an answer was made of."""
