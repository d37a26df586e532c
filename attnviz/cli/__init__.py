"""The terminal's side: flags in, exit codes out. Nothing heavy is imported before a command runs."""
