"""`python -m propos` is the `propos` command."""

from propos.cli import main

main()
