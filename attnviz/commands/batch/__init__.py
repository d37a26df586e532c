"""`attnviz batch` and `attnviz diff`: what configs ask for, and what differs between two results."""
