"""What each command is asked: its options with their types, defaults and help, in groups that commands share."""
