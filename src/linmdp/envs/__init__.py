"""Environments: linear MDPs with exact planning, and any discrete-action Gymnasium environment."""
