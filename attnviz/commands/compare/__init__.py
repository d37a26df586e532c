"""`attnviz compare`: the same texts through several models."""
