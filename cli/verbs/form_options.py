"""Defines the options that describe a Ray cluster, and reads them as a form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli.options import add_options, end

if TYPE_CHECKING:
    from cli.managing.forms import ClusterForm

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--queue", help="The GangQueue; empty: the one that selects the namespace."),
    click.option("--priority-class", help="Its place among those that wait."),
    click.option("--topology-required", help="Node label: all workers in one value of it."),
    click.option("--topology-preferred", help="Node label: in one value, if they fit there."),
    click.option("--replica-topology-required", help="Node label: each replica in one value."),
    click.option("--expected-duration", help="How long it runs, such as 2h30m."),
    click.option("--create-pods", help="always, or when-admitted: none while it waits."),
    click.option("--image", help="Of all Ray containers."),
    click.option("--ray-version", help="Where the image's tag does not tell it."),
    click.option("--head", help="The head: cpus=2,memory=8Gi,gpus=0,image=..."),
    click.option(
        *("--group", "groups"),
        multiple=True,
        help="A worker group: NAME,replicas=2,min=0,max=4,hosts=1,cpus=8,memory=32Gi,gpus=8,"
        "gpu=nvidia.com/gpu,image=...",
    ),
    click.option(
        *("--without-group", "without_groups"), multiple=True, help="A group to leave out."
    ),
    click.option("--autoscaler/--no-autoscaler", default=None, help="Ray's own autoscaler."),
    click.option("--idle-timeout", type=int, help="Seconds until it ends an idle worker."),
    click.option("--upscaling", help="Default, Aggressive or Conservative."),
    click.option(
        "--fault-tolerance/--no-fault-tolerance",
        default=None,
        help="The label by which the head keeps its state in the built-in Redis.",
    ),
)


def form_options(command: F) -> F:
    """Add the options of a Ray cluster; `form_of` reads them."""
    return add_options(command, _OPTIONS)


def form_of(options: dict[str, Any]) -> ClusterForm:
    """Take the options of a Ray cluster out of those of a command; ends the program at a fault."""
    from cli.endings import Unusable  # noqa: PLC0415 - a start without work must not pay for it
    from cli.managing.forms import ClusterForm  # noqa: PLC0415
    from cli.managing.written import read_groups, read_head  # noqa: PLC0415

    head, groups = options.pop("head"), options.pop("groups")
    idle, upscaling = options.pop("idle_timeout"), options.pop("upscaling")
    rest = {each: options.pop(each) for each in ClusterForm.__struct_fields__ if each in options}
    try:
        return ClusterForm(
            head=read_head(head) if head is not None else None,
            groups=read_groups(groups),
            idle_timeout_seconds=idle,
            upscaling_mode=upscaling,
            **rest,
        )
    except Unusable as fault:
        end(fault)
