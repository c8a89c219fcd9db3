"""Draws the pictures of README from a real run: the demo's table, and what `muster why` says then.

usage: python -m demo.pictures DIRECTORY
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from demo.cli import start
from demo.display import Lines, table_of
from demo.play import play
from demo.scenes import SCENES
from demo.world import Row
from testbed.cluster import prepare
from testbed.history import Gang
from testbed.waiting import wait_until

WIDTH = 110

# Rich's picture fetches its font from elsewhere; a reader's own does.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "Fira Code", "ui-monospace"
)


class Pictures(Lines):
    """Shows lines, and draws what stands when one gang runs and another waits."""

    def __init__(self, directory: Path) -> None:
        super().__init__(sys.stdout)
        self._directory = directory
        self._rows: Sequence[Row] = ()
        self.kubeconfig = Path()
        self.drawn = False

    def show(self, rows: Sequence[Row]) -> None:
        """Keep what stands now."""
        super().show(rows)
        self._rows = rows

    def pause(self) -> None:
        """Draw at the first moment at which one waits for the other; the scene stands still."""
        if self.drawn or not any(row.state for row in self._rows):
            return  # without the label there are no gangs
        gang = wait_until(self._waiting, "one gang to run and the other to say why it waits")
        name = "/".join(gang)
        said = self._why(name)
        self._draw("demo", "make demo", lambda console: console.print(table_of(self._rows)))
        self._draw("why", f"muster why {name}", lambda console: console.print(Text(said)))
        self.drawn = True

    def _waiting(self) -> Gang | None:
        """Return the gang that says why it waits while another runs."""
        if not any(row.state and row.state.phase == "Running" for row in self._rows):
            return None
        return next((row.gang for row in self._rows if row.gated and _says_why(row)), None)

    def _why(self, gang: str) -> str:
        command = [sys.executable, "-m", "cli", "why", gang]
        env = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        return "\n".join(line.rstrip() for line in done.stdout.splitlines())

    def _draw(self, name: str, title: str, draw: Callable[[Console], None]) -> None:
        console = Console(file=io.StringIO(), record=True, width=WIDTH, force_terminal=True)
        draw(console)
        svg = console.export_svg(title=title, code_format=FORMAT, unique_id=name)
        lines = (line.rstrip() for line in svg.splitlines() if "<!--" not in line)
        (self._directory / f"{name}.svg").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _says_why(row: Row) -> bool:
    return row.state is not None and bool(row.state.message)


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
def main(directory: Path) -> None:
    """Play the first scene, and draw it into DIRECTORY."""
    display = Pictures(directory)
    prepare(display.say)
    with (
        tempfile.TemporaryDirectory(prefix="muster-pictures-") as scratch,
        start(Path(scratch) / "cluster", display) as cluster,
    ):
        display.kubeconfig = cluster.kubeconfig
        holds = play(cluster, SCENES[:1], display)
    if not (holds and display.drawn):
        raise click.ClickException("the scene went otherwise; nothing is drawn of it")


if __name__ == "__main__":
    main()
