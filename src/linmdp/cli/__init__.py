"""The command line: parsing and printing only."""

from linmdp.cli.main import main

__all__ = ["main"]
