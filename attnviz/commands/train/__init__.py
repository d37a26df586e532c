"""`attnviz train`, `attnviz predict` and `attnviz vocab`: classifiers and what they answer."""
