"""One function per command: from a spec to what it made. The only place where rooms meet."""
