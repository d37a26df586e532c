"""`attnviz heatmap`: texts as pictures of who attends to what."""
