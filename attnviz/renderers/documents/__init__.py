"""Reports as documents: CSV, JSON, LaTeX, Markdown. Know `report` only."""
