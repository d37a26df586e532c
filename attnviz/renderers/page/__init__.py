"""Reports as pages to explore: what a page holds (Python), and beside it what shows it (JavaScript, CSS)."""
