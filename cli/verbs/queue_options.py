"""Defines the options that describe a GangQueue, and reads them as a form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli.endings import Unusable
from cli.options import add_options, end

if TYPE_CHECKING:
    from cli.managing.forms import QueueForm

F = TypeVar("F", bound=Callable[..., Any])

_MAPS = ("quota", "borrowing_limit", "lending_limit", "namespace_labels", "node_labels")
_OPTIONS = (
    click.option("--parent", help="The queue to borrow from; empty: none."),
    click.option("--quota", multiple=True, help="nvidia.com/gpu=16,cpu=512: what its gangs hold."),
    click.option("--borrowing-limit", multiple=True, help="The same: how much of the parent's."),
    click.option("--lending-limit", multiple=True, help="The same: how much others may take."),
    click.option("--namespaces", help="a,b: whose gangs may use it."),
    click.option("--namespace-labels", multiple=True, help="key=value: namespaces by labels."),
    click.option("--node-labels", multiple=True, help="key=value: the nodes its gangs may use."),
    click.option("--ordering", help="Priority or FIFO."),
    click.option("--when-blocked", help="Strict, BestEffort or Backfill."),
    click.option("--stop", help="None, Hold or HoldAndDrain."),
    click.option("--within-queue", help="Stop gangs of the queue: Never or LowerPriority."),
    click.option("--reclaim", help="Stop borrowers: Never, LowerPriority or Any."),
    click.option("--while-borrowing", help="Stop others to borrow: Never or LowerPriority."),
    click.option("--create-pods", help="Always or WhenAdmitted."),
)


def queue_options(command: F) -> F:
    """Add the options of a GangQueue; `form_of` reads them."""
    return add_options(command, _OPTIONS)


def form_of(options: dict[str, Any]) -> QueueForm:
    """Read the options as a form; ends the program at a fault."""
    from cli.managing.forms import QueueForm  # noqa: PLC0415 - a start must not pay for it
    from cli.managing.written import read_map  # noqa: PLC0415

    listed = options.pop("namespaces")
    names = None if listed is None else tuple(filter(None, listed.split(",")))
    try:
        maps: dict[str, Any] = {each: read_map(_spelled(each), options.pop(each)) for each in _MAPS}
    except Unusable as fault:
        end(fault)
    return QueueForm(namespaces=names, **maps, **options)


def _spelled(field: str) -> str:
    return f"--{field.replace('_', '-')}"
