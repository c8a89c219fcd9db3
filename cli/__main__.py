"""`muster COMMAND`: what people ask of Muster. Each command is a module of its own."""

import click

from cli.lazy_group import LazyGroup

COMMANDS = {
    "import": ("cli.import_command", "Print GangQueues for the queues of another system."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Gang admission for Ray on Kubernetes, from the command line."""


if __name__ == "__main__":
    main(prog_name="python -m cli")
