"""Reports on a terminal. With the command line, the only room that knows rich."""
