"""Kernels: what operators compute on whole columns, without state of their own."""
