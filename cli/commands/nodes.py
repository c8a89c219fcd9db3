"""`muster nodes`: the GPUs of nodes and pools, and how many pods still fit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from cli.endings import FINE, NOT_READ, Absent
from cli.options import cluster_options, epilog, output_option, run

if TYPE_CHECKING:
    from cli.read.reader import Reader
    from cli.read.target import Target
    from cli.report.room.nodes import NodesReport


@click.command(
    epilog=epilog(
        "muster nodes",
        "muster nodes --pool-label cloud.google.com/gke-nodepool -o wide",
        "muster nodes --resource nvidia.com/mig-1g.10gb",
        "muster nodes -o json | jq '.pools[] | {name, fit8: .holes[\"8\"]}'",
    )
)
@cluster_options
@output_option
@click.option("--resource", multiple=True, help="Default: every accelerator that nodes offer.")
@click.option(
    "--pool-label",
    multiple=True,
    help="Label of nodes that names their pool. Default: the model of the GPU.",
)
@click.pass_context
def command(
    context: click.Context,
    target: Target,
    output: str,
    resource: tuple[str, ...],
    pool_label: tuple[str, ...],
) -> None:
    """Print what is used (#), reserved (=) and free (.) of the GPUs of pools and nodes.

    Where no node has a GPU it is CPU and memory. Devices by claim count by their DeviceClass;
    those that are shared or that several nodes reach stand below the pools.
    FIT n is how many more pods of n GPUs fit, each size counted alone, with the CPU and memory
    that pods of the cluster typically take beside a GPU. It needs the right to list nodes and
    pods, and of devices by claim DeviceClasses, ResourceSlices, ResourceClaims and
    DeviceTaintRules: see the ClusterRole muster-viewer.
    """
    from cli.read.cluster import read_gangs_anywhere  # noqa: PLC0415
    from cli.read.devices import with_devices  # noqa: PLC0415
    from cli.report.room.nodes import nodes_report  # noqa: PLC0415
    from cli.report.snapshot import GANGS, NODES, PODS  # noqa: PLC0415
    from cli.show.nodes import table  # noqa: PLC0415
    from cli.show.output import note, show  # noqa: PLC0415

    async def work(reader: Reader) -> NodesReport:
        found = await with_devices(reader, await read_gangs_anywhere(reader, GANGS, NODES, PODS))
        report = nodes_report(found, resource, pool_label)
        missing = [each for each in resource if each not in report.offered]
        if missing and report.is_known:
            offered = ", ".join(report.offered)
            raise Absent(f"--resource {missing[0]}: no node has any; nodes have {offered}")
        return report

    report = run(context, target, work)
    note(report.unread)
    show(report, output, table(report, output))
    sys.exit(FINE if report.is_known else NOT_READ)
