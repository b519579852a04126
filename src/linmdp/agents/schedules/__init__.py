"""When to plan, store and forget: one file per algorithm."""
