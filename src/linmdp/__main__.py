"""`python -m linmdp` is `linmdp`."""

from linmdp.cli import main

main()
