"""`python -m download.command_file PACKAGES TO`: writes `muster` with its packages as one file.

The packages are those that pip installed into a folder. Five of them are compiled, so the file is
for the Python and the platform that this runs on, which its name and its first line say.
"""

import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path

from download import preamble

ENTRY_POINT = "cli.__main__:run"
COMPILED = ("aiohttp", "cryptography.x509", "msgspec", "numpy", "orjson")


def name(version: str) -> str:
    """What the file is called, by which a person finds the one that is theirs."""
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return f"muster-{version}-{python}-{platform.system()}-{platform.machine()}.pyz"


def version_of(packages: Path) -> str:
    """Of Muster, as pip installed it there."""
    (found,) = distributions(name="muster", path=[str(packages)])
    return found.version


def write(packages: Path, to: Path) -> Path:
    """Have shiv write the file."""
    (packages / preamble.BUILT_FOR).write_text(f"{preamble.this_python()}\n")
    file = to / name(version_of(packages))
    to.mkdir(parents=True, exist_ok=True)
    # The minor is named: `python3` would be another one on most machines.
    python = f"/usr/bin/env python{sys.version_info.major}.{sys.version_info.minor}"
    options = {
        "--site-packages": str(packages),
        "--entry-point": ENTRY_POINT,
        "--preamble": preamble.__file__,
        "--python": python,
        "--output-file": str(file),
    }
    words = [word for option in options.items() for word in option]
    command = [sys.executable, "-m", "shiv.cli", "--compressed", "--reproducible", *words]
    subprocess.run(command, check=True)
    return file


def load(file: Path) -> None:
    """Load what is compiled from the file: a release has none that does not load where it was made.

    shiv then runs what it is told instead of the command.
    """
    with tempfile.TemporaryDirectory() as root:
        environment = {**os.environ, "SHIV_ROOT": root, "SHIV_INTERPRETER": "1"}
        command = [sys.executable, str(file), "-c", f"import {', '.join(COMPILED)}"]
        subprocess.run(command, env=environment, check=True)


if __name__ == "__main__":
    written = write(Path(sys.argv[1]), Path(sys.argv[2]))
    load(written)
