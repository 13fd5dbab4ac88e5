"""A stand-in for Triton: what the recorder makes for it ahead of time says which process has made it."""
