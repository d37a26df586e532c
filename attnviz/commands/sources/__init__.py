"""The wing of `attnviz sources`: which passages of a prompt an answer needs."""
