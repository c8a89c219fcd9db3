"""The command's file says clearly what it was built for where it cannot run."""

import platform
import sys
from pathlib import Path

import pytest

from download.preamble import BUILT_FOR, check, refusal, this_python

FILE = "muster-0.1.0-python3.13-Linux-x86_64.pyz"


def test_what_was_built_here_runs_here(tmp_path: Path) -> None:
    (tmp_path / BUILT_FOR).write_text(f"{this_python()}\n")
    check(FILE, tmp_path)


def test_this_python_is_named_as_its_file_is() -> None:
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert this_python().startswith(f"Python {minor} on {platform.system()} {platform.machine()}")


@pytest.mark.parametrize(
    "here",
    [
        "Python 3.12 on Linux x86_64",
        "Python 3.13 on Linux aarch64",
        "Python 3.13 on Darwin x86_64",
        "Python 3.13 on Linux x86_64 with musl",
        "Python 3.13t on Linux x86_64",
        "PyPy 3.13 on Linux x86_64",
    ],
)
def test_another_python_or_platform_is_told_what_it_is_for(here: str) -> None:
    assert refusal(FILE, "Python 3.13 on Linux x86_64", here) == (
        f"{FILE} was built for Python 3.13 on Linux x86_64, and this is {here}. "
        f"Take the file of the release that is for this one, or call: python3.13 {FILE}"
    )


def test_it_ends_as_wrong_use_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / BUILT_FOR).write_text("Python 3.9 on Plan9 mips\n")
    with pytest.raises(SystemExit, match="2"):
        check(FILE, tmp_path)
    assert "was built for Python 3.9 on Plan9 mips" in capsys.readouterr().err
