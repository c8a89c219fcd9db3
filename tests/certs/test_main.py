"""The commands do what they say, and keep secrets secret."""

from __future__ import annotations

import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest

from certs.chain import Pair, ServerNames, belong_together, serves, signed_by


def _issue(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "certs", "issue", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_issue_writes_a_chain_and_prints_no_secret(tmp_path: Path) -> None:
    directory = tmp_path / "pki"
    done = _issue("--dir", str(directory), "--dns", "localhost", "--ip", "127.0.0.1")
    assert done.returncode == 0, done.stderr
    pair = Pair((directory / "tls.crt").read_bytes(), (directory / "tls.key").read_bytes())
    assert belong_together(pair)
    assert signed_by(pair.certificate, (directory / "ca.crt").read_bytes())
    assert serves(pair.certificate, ServerNames(("localhost",), (ip_address("127.0.0.1"),)))
    assert "PRIVATE" not in done.stdout + done.stderr
    assert "valid until" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ip", "127.0.0"], "'127.0.0'"),
        ([], "at least one"),
        (["--dns", "grün.example"], "DNS name"),
    ],
)
def test_a_wrong_name_is_said_without_a_trace(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    done = _issue("--dir", str(tmp_path / "pki"), *arguments)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "pki").exists()


def test_a_directory_that_cannot_be_made_is_said_without_a_trace(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = _issue("--dir", str(tmp_path / "file" / "pki"), "--dns", "localhost")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
