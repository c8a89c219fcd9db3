"""Refuses a Python or a platform that the file was not built for; shiv runs it before the command.

It says so on old Pythons too, so it has no syntax that those before 3.11 lack.
"""

import platform
import sys
import sysconfig
from pathlib import Path

BUILT_FOR = "built-for"
"""The file beside the packages that says what they were compiled for."""
WRONG_USE = 2


def this_python() -> str:
    """Say what compiled packages must match, with the words of `uname -s` and `uname -m`."""
    free_threaded = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    minor = ".".join(str(each) for each in sys.version_info[:2])
    libc = " with musl" if "musl" in str(sysconfig.get_config_var("SOABI")) else ""
    name = platform.python_implementation().replace("CPython", "Python")
    return f"{name} {minor}{free_threaded} on {platform.system()} {platform.machine()}{libc}"


def refusal(file: str, built_for: str, here: str) -> str:
    """What is said where the file cannot run; empty where it can."""
    if here == built_for:
        return ""
    python = built_for.partition(" on ")[0].lower().replace(" ", "")
    return (
        f"{file} was built for {built_for}, and this is {here}. "
        f"Take the file of the release that is for this one, or call: {python} {file}"
    )


def check(file: str, packages: Path) -> None:
    """End with what is wrong where the packages cannot be loaded here."""
    said = refusal(file, (packages / BUILT_FOR).read_text().strip(), this_python())
    if said:
        sys.stderr.write(f"{said}\n")
        sys.exit(WRONG_USE)


if __name__ == "__main__":
    # What shiv calls the file, and the folder of its packages; argv is this script's by now.
    check(globals()["archive"], Path(globals()["site_packages"]))
