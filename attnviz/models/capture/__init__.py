"""Every attention that PyTorch computes, seen and checked: knows modules, and no tokens and no records."""
