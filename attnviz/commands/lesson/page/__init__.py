"""The parts of a lesson: its outline, its style and its scripts, beside those that all pages share."""
