"""Published algorithms to be compared with: each from its paper, small, on raw states."""
