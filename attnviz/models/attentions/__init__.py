"""Weights that other programs put out, as records: objects of Python, and files. Sees no model run."""
