"""`attnviz render`: a saved record drawn again."""
