"""`attnviz survey` and `attnviz merge`: what each head does over many texts."""
