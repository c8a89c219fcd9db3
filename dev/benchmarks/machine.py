"""Describes the machine that was measured on."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

from testbed.recipes import chosen_kuberay, chosen_kubernetes, recipes_for

LOAD = "load at the start"


def facts() -> dict[str, Any]:
    """Cores, model, load, Python and the versions of the control plane."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "model": _model(),
        "memory GiB": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        LOAD: " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "Python": platform.python_version(),
        **{
            recipe.name: _version(recipe.directory / "go.mod", recipe.module)
            for recipe in recipes_for(chosen_kubernetes(), chosen_kuberay())
        },
    }


def _model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _version(go_mod: Path, module: str) -> str:
    found = re.search(rf"\b{re.escape(module)} v(\S+)", go_mod.read_text())
    return found.group(1) if found else "unknown"
