"""The residual stream of a decoder as the sum of what was written into it, by whom. Knows torch, no commands."""
