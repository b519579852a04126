"""Linearization: a real environment becomes a linear MDP, by contrastive representation learning.

The networks and their training are the only place of linmdp that imports torch; `data`, `measure` and `model` do not.
"""
