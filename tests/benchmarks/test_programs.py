"""Every program that runs in a cluster is measured by itself."""

import tomllib

from benchmarks.programs import PROGRAMS
from testbed.muster import ROOT

OPTIONAL = {"redis", "forecaster", "dispatcher"}
"""They do nothing that a gang waits for, and are off by default."""


def test_all_programs_are_measured() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    programs = {name.removeprefix("muster-") for name in scripts if name.startswith("muster-")}
    assert programs - OPTIONAL == {*PROGRAMS}
