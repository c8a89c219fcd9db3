"""The commands that build, start, show and stop the testbed."""

from __future__ import annotations

import functools
import shlex
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

import click

from testbed import muster, nodes, standing
from testbed.build import cache_directory
from testbed.cluster import Cluster, prepare
from testbed.errors import TestbedError
from testbed.health import endpoint
from testbed.nodes import NodeSpec
from testbed.options import Options
from testbed.recipes import (
    DEFAULT_KUBERAY,
    DEFAULT_KUBERNETES,
    KUBERAY,
    KUBERNETES,
    chosen_kuberay,
    chosen_kubernetes,
)
from testbed.standing import Standing

DEFAULT_NAME = "default"
DEFAULT_NODES = 2

P = ParamSpec("P")


def _errors_are_messages(command: Callable[P, None]) -> Callable[P, None]:
    """Show what the testbed says went wrong without a traceback."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except TestbedError as error:
            notes = getattr(error, "__notes__", ())
            raise click.ClickException("\n".join([str(error), *notes])) from error

    return run


class _Progress:
    """Lines with the seconds since the start, on standard error: the output is for shells."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def say(self, line: str) -> None:
        click.echo(f"{time.monotonic() - self._started:6.1f} s  {line}", err=True)


_name_option = click.option(
    "--name", default=DEFAULT_NAME, show_default=True, help="Which cluster; several may be up."
)
_kubernetes_option = click.option(
    "--kubernetes",
    type=click.Choice(list(KUBERNETES)),
    default=chosen_kubernetes,
    help=f"Its version  [{DEFAULT_KUBERNETES}]",
)
_kuberay_option = click.option(
    "--kuberay",
    type=click.Choice(list(KUBERAY)),
    default=chosen_kuberay,
    help=f"The version of KubeRay  [{DEFAULT_KUBERAY}]",
)


@click.group()
def main() -> None:
    """Run a real Kubernetes control plane with KubeRay and simulated nodes on this machine."""


@main.command("build")
@_kubernetes_option
@_kuberay_option
@_errors_are_messages
def build_command(*, kubernetes: str, kuberay: str) -> None:
    """Build all programs that the cache lacks."""
    progress = _Progress()
    prepare(progress.say, Options(kubernetes=kubernetes, kuberay_version=kuberay))
    progress.say(f"all programs are in {cache_directory()}")


@main.command()
@_name_option
@_kubernetes_option
@_kuberay_option
@click.option("--nodes", "count", type=click.IntRange(min=0), help="How many equal nodes  [2]")
@click.option("--cpus", default="8", show_default=True, help="CPUs of each")
@click.option("--memory", default="32Gi", show_default=True, help="Memory of each")
@click.option("--gpus", default=0, show_default=True, help="nvidia.com/gpu of each")
@click.option("--label", "labels", multiple=True, metavar="K=V", help="A label for each")
@click.option("--taint", "taints", multiple=True, metavar="K=V:EFFECT", help="A taint for each")
@click.option(
    "--nodes-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML list of nodes: name, count, cpus, memory, gpus, pods, ephemeral_storage, labels, "
    "taints, resources",
)
@click.option("--muster", "with_muster", is_flag=True, help="Start Muster from this checkout")
@_errors_are_messages
def up(  # noqa: PLR0913 - one for each option
    *,
    name: str,
    kubernetes: str,
    kuberay: str,
    count: int | None,
    cpus: str,
    memory: str,
    gpus: int,
    labels: tuple[str, ...],
    taints: tuple[str, ...],
    nodes_file: Path | None,
    with_muster: bool,
) -> None:
    """Start a cluster in the background; `eval "$(python -m testbed up)"` sets KUBECONFIG."""
    template = NodeSpec(
        "node", cpus, memory, gpus, labels=dict(map(nodes.parse_label, labels)), taints=taints
    )
    specs = chosen_nodes(template, count, nodes_file)
    options = Options(kubernetes=kubernetes, kuberay_version=kuberay)
    if with_muster:
        cluster = start_standing(name, muster.with_muster(options), specs, muster.start_muster)
    else:
        cluster = start_standing(name, options, specs, _nothing_more)
    click.echo(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")


def chosen_nodes(template: NodeSpec, count: int | None, nodes_file: Path | None) -> list[NodeSpec]:
    """Combine the equal nodes asked for with those of a file; with neither, a few to begin with."""
    listed = nodes.read_node_file(nodes_file) if nodes_file else []
    wanted = count if count is not None else 0 if nodes_file else DEFAULT_NODES
    for taint in template.taints:
        nodes.parse_taint(taint)
    return [*nodes.copies(template, wanted), *listed]


def _nothing_more(_cluster: Cluster) -> None:
    """Leave the cluster as stock as it is."""


def start_standing(
    name: str,
    options: Options,
    specs: list[NodeSpec],
    start_more: Callable[[Cluster], object],
) -> Cluster:
    """Start a cluster that outlives this process; on any failure nothing of it stays running."""
    progress = _Progress()
    prepare(progress.say, options)
    cluster = Cluster.start(_free_directory(name), options)
    progress.say(f"the control plane answers at {cluster.server}")
    try:
        cluster.add_nodes(specs)
        progress.say(f"{len(specs)} nodes are ready")
        start_more(cluster)
        standing.leave_standing(cluster)
    except BaseException:
        cluster.stop()
        cluster.remove_data()
        progress.say(f"stopped again; logs are in {cluster.logs}")
        raise
    progress.say(f"up; logs are in {cluster.logs}")
    return cluster


def _free_directory(name: str) -> Path:
    found = standing.find(name)
    if found and found.alive:
        raise TestbedError(
            f"cluster {name!r} is up already (KUBECONFIG={found.kubeconfig}): take it down, or "
            "give another --name"
        )
    directory = standing.directory_of(name)
    shutil.rmtree(directory, ignore_errors=True)
    return directory


@main.command()
@_name_option
@click.option("--all", "all_clusters", is_flag=True, help="Every cluster that is up")
@_errors_are_messages
def down(*, name: str, all_clusters: bool) -> None:
    """Stop a cluster and delete all it had."""
    named = standing.find(name)
    found = standing.all_standing() if all_clusters else [named] if named else []
    if not found:
        click.echo("nothing to take down: no such cluster is up")
    for cluster in found:
        standing.take_down(cluster)
        click.echo(f"cluster {cluster.name} is down")


@main.command()
@click.pass_context
@_errors_are_messages
def status(context: click.Context) -> None:
    """Show every cluster that is up, with its processes; exit 1 when one is not as it should be."""
    found = standing.all_standing()
    if not found:
        click.echo("no cluster is up")
    conditions = [condition for cluster in found for condition in _show(cluster)]
    if not {"healthy", "running"}.issuperset(conditions):
        context.exit(1)


def _show(cluster: Standing) -> list[str]:
    click.echo(f"cluster {cluster.name}")
    click.echo(f"  export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")
    conditions = []
    for member in cluster.members:
        asked = endpoint(member.name, cluster.ports)
        condition = standing.condition(cluster, member)
        port = asked.port if asked else "-"
        click.echo(f"  {member.name:<26} pid {member.pid:<8} port {port:<6} {condition}")
        conditions.append(condition)
    return conditions
