"""`python -m testbed`: see `cli.py`."""

from testbed.cli import main

main(prog_name="python -m testbed")
