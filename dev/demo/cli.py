"""The command that runs the demo, and what it leaves behind.

Nothing but, where something deviated, the logs; with `--keep` the whole cluster.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from demo.display import Display, make_display
from demo.play import play
from demo.scenes import SCENES, Scene
from testbed import muster, standing
from testbed.cluster import Cluster, prepare
from testbed.errors import TestbedError

STANDING_NAME = "demo"
_INTERRUPTED = 130


@click.command()
@click.option(
    "--scene",
    "numbers",
    multiple=True,
    type=click.Choice([str(scene.number) for scene in SCENES]),
    help="Which scenes to play, all by default; may be given several times.",
)
@click.option("--plain", is_flag=True, help="Lines instead of a live table, in a terminal too.")
@click.option("--keep", is_flag=True, envvar="KEEP", help="Leave the cluster running afterwards.")
@click.pass_context
def main(context: click.Context, *, numbers: tuple[str, ...], plain: bool, keep: bool) -> None:
    """Show gangs that start whole or not at all, on a real control plane on this machine."""
    display = make_display(sys.stdout, plain=plain)
    scenes = [scene for scene in SCENES if not numbers or str(scene.number) in numbers]
    try:
        prepare(display.say)
        holds = play_and_keep(scenes, display) if keep else play_and_clean_up(scenes, display)
    except TestbedError as error:
        notes = getattr(error, "__notes__", ())
        raise click.ClickException("\n".join([str(error), *notes])) from error
    except KeyboardInterrupt:
        click.echo("interrupted; everything that was started is stopped", err=True)
        context.exit(_INTERRUPTED)
    context.exit(0 if holds else 1)


def play_and_clean_up(scenes: Sequence[Scene], display: Display) -> bool:
    """Play on a cluster that ends with the demo; its logs stay when something deviated."""
    directory = Path(tempfile.mkdtemp(prefix="muster-demo-"))
    try:
        with start(directory / "cluster", display) as cluster:
            holds = show(cluster, scenes, display)
    except KeyboardInterrupt:
        shutil.rmtree(directory)
        raise
    if holds:
        shutil.rmtree(directory)
    else:
        cluster.remove_data()
    return holds


def play_and_keep(scenes: Sequence[Scene], display: Display) -> bool:
    """Play on a cluster that stays, also when something deviated; say how to use and stop it."""
    cluster = start(_free_directory(), display)
    try:
        holds = show(cluster, scenes, display)
        standing.leave_standing(cluster)
    except BaseException:
        cluster.stop()
        cluster.remove_data()
        raise
    click.echo("The cluster stays. These lines show what is on it, and the last one stops it:")
    for line in usage(cluster.kubeconfig, cluster.site.programs.program("kubectl")):
        click.echo(line)
    return holds


def start(directory: Path, display: Display) -> Cluster:
    """Bring up a control plane with Muster from this checkout."""
    began = time.monotonic()
    display.say("starting etcd, kube-apiserver, kube-scheduler, kube-controller-manager, KubeRay")
    cluster = Cluster.start(directory, muster.with_app_wrappers())
    try:
        display.say("starting Muster: webhook, coordinator and wrapper")
        muster.start_with_app_wrappers(cluster)
    except BaseException as error:
        error.add_note(f"The logs are in {cluster.logs}")
        cluster.stop()
        raise
    display.say(f"all of it is up after {time.monotonic() - began:.1f} s")
    return cluster


def show(cluster: Cluster, scenes: Sequence[Scene], display: Display) -> bool:
    """Play the scenes, and say where to look when something deviates."""
    holds = play(cluster, scenes, display)
    if not holds:
        click.echo(f"not everything was as it must be; the logs are in {cluster.logs}", err=True)
    return holds


def usage(kubeconfig: Path, kubectl: Path) -> Iterator[str]:
    """Yield the lines to paste into a shell, here, to look at a cluster that stays."""
    command = _shown(Path(sys.executable).with_name("muster"))
    yield f"export KUBECONFIG={shlex.quote(str(kubeconfig))}"
    yield f"{_shown(kubectl)} get gangs,rayclusters,pods --all-namespaces"
    yield f"{command} status --all-namespaces"
    yield f"{command} doctor"
    yield _stop_command()


def _stop_command() -> str:
    # The Python that runs this has what it takes; whatever `python` is on the PATH may not.
    return f"{_shown(Path(sys.executable))} -m testbed down --name {STANDING_NAME}"


def _shown(program: Path) -> str:
    here = Path.cwd()
    shown = program.relative_to(here) if program.is_relative_to(here) else program
    return shlex.quote(str(shown))


def _free_directory() -> Path:
    found = standing.find(STANDING_NAME)
    if found and found.alive:
        raise TestbedError(
            f"a demo is up already (KUBECONFIG={found.kubeconfig}); to stop it: {_stop_command()}"
        )
    directory = standing.directory_of(STANDING_NAME)
    shutil.rmtree(directory, ignore_errors=True)
    return directory
