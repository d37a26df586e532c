"""`attnviz attribute`: which tokens an answer depends on."""
