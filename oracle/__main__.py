"""`python -m oracle` is `bankshot`."""

from .cli import main

main(prog_name="bankshot")
