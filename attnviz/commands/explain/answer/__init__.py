"""A model's answer: which heads wrote it, and why they looked where they did."""
