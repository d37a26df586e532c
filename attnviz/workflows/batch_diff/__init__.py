"""One comparison of two batches, which `check`, `diff` and `verify` each show in their own way."""
