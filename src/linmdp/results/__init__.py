"""Results: how they are written, summed up and compared."""
