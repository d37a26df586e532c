"""Reports as documents: CSV, JSON, LaTeX, Markdown, JUnit. Know `report` only."""
