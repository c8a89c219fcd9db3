"""Run the demo: `python -m demo`."""

from demo.cli import main

main()
