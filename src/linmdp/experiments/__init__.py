"""Studies: what is run, and how it is shown. One module per study."""
