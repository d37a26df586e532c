"""Third-party models, found and read safely. Nothing that came with one is run or unpickled."""
