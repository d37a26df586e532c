"""`attnviz explain`: one query worked out step by step."""
