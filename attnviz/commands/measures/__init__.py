"""`attnviz measures`: the table of measures."""
