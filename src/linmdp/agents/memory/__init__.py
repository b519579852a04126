"""What is kept of the past: one file per way."""
