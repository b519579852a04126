"""Studies that fill tables of the docs: one folder each, run by `python -m research STUDY`. Nobody imports this."""
