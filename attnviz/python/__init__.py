"""What `import attnviz` offers, notebooks, and the fixture of pytest. May use every room."""
