"""`muster COMMAND`: what people ask of Muster. Each command is a module of its own."""

import sys
from pathlib import Path

import click

from cli.endings import TABLE
from cli.lazy_group import LazyGroup

COMMANDS = {
    "completion": ("cli.commands.completion", "Print the completion script of a shell."),
    "create": ("cli.verbs.create", "Create a Ray cluster, and say whether it would start now."),
    "dashboard": ("cli.commands.dashboard", "Serve a page with queues, gangs and nodes."),
    "defrag": ("cli.commands.defrag", "Which gangs to move so that a waiting one can start."),
    "delete": ("cli.verbs.delete", "Delete a Ray cluster or a job, with what goes with it."),
    "doctor": (
        "cli.commands.doctor",
        "Whether all is there that Muster needs, and what is in its way.",
    ),
    "edit": ("cli.verbs.edit", "Change a Ray cluster, and say what holds now and what later."),
    "explain": ("cli.commands.explain", "Print what a reason means and what to do about it."),
    "fit": ("cli.commands.fit", "Say whether Ray clusters of a file would start now."),
    "import": ("cli.import_command", "Print GangQueues for the queues of another system."),
    "jobs": ("cli.commands.jobs", "Jobs: their state, the Ray cluster they run on, why they wait."),
    "logs": ("cli.commands.logs", "Logs of the pods of a Ray cluster, or of a job."),
    "nodes": ("cli.commands.nodes", "GPUs of nodes and pools, and how many pods still fit."),
    "queue": ("cli.commands.queue", "Quota, usage and waiting gangs of queues."),
    "queue create": ("cli.verbs.queue_create", "Create a GangQueue."),
    "queue edit": ("cli.verbs.queue_edit", "Change a GangQueue."),
    "redis rotate": ("cli.commands.redis.rotate", "Replace the keys of the built-in Redis."),
    "redis status": (
        "cli.commands.redis.status",
        "The built-in Redis, and what keeps state in it.",
    ),
    "release": ("cli.commands.release", "Take the gates off pods: the kill switch."),
    "resume": ("cli.verbs.resume", "Start a suspended Ray cluster again, in its queue."),
    "scale": ("cli.verbs.scale", "Set how many workers a Ray cluster has."),
    "status": ("cli.commands.status", "Gangs, queues and GPUs on one screen."),
    "submit": (
        "cli.verbs.submit",
        "Submit a job, to a Ray cluster that runs or to one of its own.",
    ),
    "suspend": ("cli.verbs.suspend", "Delete the pods of a Ray cluster, which stays."),
    "uninstall": ("cli.commands.uninstall", "Remove Muster, and leave nothing that waits for it."),
    "what-if": ("cli.commands.what_if", "What changes of the cluster would do to its gangs."),
    "why": ("cli.commands.why", "Why a gang waits, what would help, what happened."),
}

_EPILOG = f"""\
\b
Exit code:
{TABLE}
\b
Examples:
  muster status --watch
  muster why team/train
  muster queue research
  kubectl muster nodes
"""


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="muster", prog_name="muster", message="%(prog)s %(version)s")
def main() -> None:
    """Gang admission for Ray on Kubernetes, from the command line.

    Every command works with the rights of its caller. Those that destroy anything ask before, and
    have --yes where no terminal is. -n, -o, --kubeconfig and --context may also stand before it.
    """


def run() -> None:
    """Run as what it was called by: `muster`, whatever its file is called, or `kubectl muster`."""
    plugin = Path(sys.argv[0]).name.startswith("kubectl-")
    main(prog_name="kubectl muster" if plugin else "muster")


if __name__ == "__main__":
    main(prog_name="python -m cli")
