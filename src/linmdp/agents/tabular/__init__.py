"""Algorithms for finite states that count transitions, and use no features."""
