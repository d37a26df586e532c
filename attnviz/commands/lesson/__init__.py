"""`attnviz lesson`: one sentence as a page to learn from, from one head by hand to what several heads are good for."""
