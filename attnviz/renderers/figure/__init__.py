"""Reports as pictures. The only package that knows matplotlib and seaborn; `files` is what others call."""
