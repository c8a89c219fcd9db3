"""What does `python -m testbed` run?"""

from testbed.cli import main

main(prog_name="python -m testbed")
