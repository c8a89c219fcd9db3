"""Draws the pictures of docs/dashboard.md: views of the page in Chromium, on a real control plane.

usage: python -m demo.page_pictures DIRECTORY

A picture is the page's own HTML and style in an SVG, so it is text, sharp at each size, and follows
a reader's light or dark.
"""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from demo.cli import start
from demo.display import Lines
from demo.manifests import as_gang, ray_cluster, with_worker_gpus
from demo.stage import Stage
from demo.world import World
from testbed.api import Json
from testbed.browser import Browser, missing, open_browser
from testbed.cluster import Cluster, prepare
from testbed.history import Gang
from testbed.nodes import GPU, NodeSpec, copies

NAMESPACE = "research"
WIDTH = 1200

VIEWS = {
    "page-clusters": ("/clusters", "#clusters tbody tr:nth-child(3)"),
    "page-cluster": (f"/clusters/{NAMESPACE}/train", "#moments tbody tr:nth-child(3)"),
    "page-nodes": ("/nodes", "ul.boxes li:nth-child(6)"),
    "page-queues": ("/queues", ".tree ul li"),
}
"""By name of the picture: the view, and what stands there once it is complete."""

# What a form's field shows is no attribute, and an image's style sheet is the image's own.
_DRAW = """
const body = document.body.cloneNode(true);
const typed = [...document.querySelectorAll("input")];
for (const [at, each] of [...body.querySelectorAll("input")].entries())
  each.setAttribute("value", typed[at].value);
for (const each of body.querySelectorAll("script, #skip")) each.remove();
for (const each of body.querySelectorAll("[href]")) each.setAttribute("href", "#");
const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
const style = document.createElement("style");
style.textContent = rules.map((rule) => rule.cssText).join("\\n");
body.prepend(style);
const main = document.querySelector("main").getBoundingClientRect();
return [new XMLSerializer().serializeToString(body), Math.ceil(main.bottom + scrollY)];
"""


def lab(stage: Stage) -> None:
    """Have two gangs run and two wait, in a tree of queues."""
    nodes = NodeSpec("gpu", cpus=96, memory="768Gi", gpus=8)
    stage.set_up(NAMESPACE, copies(nodes, 6))
    stage.create_queue("company", quota={GPU: 48}, namespaceSelector=None)
    stage.create_queue("research", parent="company", quota={GPU: 32})
    for name, workers in (("train", 4), ("eval", 1)):
        gang = stage.create_ray_cluster(_asking(stage, name, workers))
        stage.wait_whole(gang, workers + 1)
    for name, workers in (("tune", 3), ("ablation", 2)):
        gang = stage.create_ray_cluster(_asking(stage, name, workers))
        _wait_told(stage, gang)


def _wait_told(stage: Stage, gang: Gang) -> None:
    stage.wait_until(
        lambda: stage.world.state(gang).message, f"{'/'.join(gang)} to say why it waits"
    )


def _asking(stage: Stage, name: str, workers: int) -> Json:
    return as_gang(with_worker_gpus(ray_cluster(stage.cluster.samples, name, workers), 8))


@contextmanager
def dashboard(cluster: Cluster) -> Iterator[str]:
    """Run `muster dashboard`; gives the address that it prints."""
    command = [sys.executable, "-m", "cli", "dashboard", "--port", "0"]
    command += ["--kubeconfig", str(cluster.kubeconfig)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def draw(origin: str, directory: Path, scratch: Path) -> None:
    """Draw all views."""
    async with open_browser(_free_port(), scratch) as browser:
        await browser.do("window/rect", width=WIDTH, height=300)
        await browser.do("url", url=origin)
        for name, (path, complete) in VIEWS.items():
            svg = await _view(browser, path, complete)
            (directory / f"{name}.svg").write_text(svg, encoding="utf-8")


async def _view(browser: Browser, path: str, complete: str) -> str:
    await browser.run("location.hash = arguments[0]", path)
    await browser.until(f"return document.querySelector('main').dataset.path === '{path}'")
    await browser.until(f"return document.querySelector('{complete}')")
    body, height = await browser.run(_DRAW)
    return picture(body, height)


def picture(body: str, height: int) -> str:
    """Put the body of a page into an SVG."""
    size = f'width="{WIDTH}" height="{height}"'
    whole = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {size}>'
    lines = re.sub(r"(</(li|tr|section|p|dd|header|ul)>)", r"\1\n", body)
    return f"{whole}\n<foreignObject {size}>\n{lines}\n</foreignObject>\n</svg>\n"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
def main(directory: Path) -> None:
    """Draw views of the page into DIRECTORY."""
    if missing():
        raise click.ClickException(missing())
    display = Lines(sys.stdout)
    prepare(display.say)
    with (
        tempfile.TemporaryDirectory(prefix="muster-pictures-") as scratch,
        start(Path(scratch) / "cluster", display) as cluster,
        World(cluster) as world,
    ):
        lab(Stage(cluster, world, display))
        with dashboard(cluster) as origin:
            asyncio.run(draw(origin, directory, Path(scratch)))


if __name__ == "__main__":
    main()
