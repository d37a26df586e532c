"""From what was captured to records: which calls belong together, what their tokens are, one record each."""
