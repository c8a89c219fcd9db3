"""The commands do what they say, and keep secrets secret."""

from __future__ import annotations

import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from certs.__main__ import main
from certs.chain import Pair, ServerNames, belong_together, serves, signed_by


def _issue(*arguments: str) -> Result:
    return _run("issue", *arguments, environment={})


def _run(*arguments: str, environment: dict[str, str]) -> Result:
    """In this process: an error that nobody catches, which would be a trace, fails the test."""
    return CliRunner().invoke(main, arguments, env=environment, catch_exceptions=False)


def test_issue_writes_a_chain_and_prints_no_secret(tmp_path: Path) -> None:
    directory = tmp_path / "pki"
    names = ("--dns", "localhost", "--ip", "127.0.0.1")
    command = [sys.executable, "-m", "certs", "issue", "--dir", str(directory), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
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
    assert done.exit_code == 1
    assert said in done.stderr
    assert not (tmp_path / "pki").exists()


def test_a_directory_that_cannot_be_made_is_said_without_a_trace(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = _issue("--dir", str(tmp_path / "file" / "pki"), "--dns", "localhost")
    assert done.exit_code == 1


UNKNOWN = "there is no such setting"
ALLOWED = "the name of a namespace: 1 to 63 of a-z, 0-9 and -, the first and the last no -"


@pytest.mark.parametrize("command", ["bootstrap", "secret", "issue"])
def test_variables_that_cannot_be_used_are_named_before_anything_is_asked(command: str) -> None:
    wrong = {"MUSTER_CERTS_NAMESPACE": "a/b", "MUSTER_CERTS_NAMESPCE": "gangs"}
    done = _run(command, environment={**wrong, "KUBECONFIG": "/nowhere"})
    assert done.stderr.splitlines() == [
        f"MUSTER_CERTS_NAMESPACE: 'a/b': not valid; allowed: {ALLOWED}",
        f"MUSTER_CERTS_NAMESPCE: 'gangs': {UNKNOWN}; the nearest is MUSTER_CERTS_NAMESPACE",
    ]
    assert (done.exit_code, done.stdout) == (2, "")


def test_an_empty_namespace_is_not_the_default() -> None:
    done = _run("bootstrap", environment={"MUSTER_CERTS_NAMESPACE": ""})
    assert done.stderr.startswith("MUSTER_CERTS_NAMESPACE: '': not valid; ")


def test_what_kubernetes_puts_beside_a_service_does_no_harm() -> None:
    beside = {"MUSTER_CERTS_SERVICE_HOST": "10.96.0.12", "MUSTER_CERTS_PORT": "tcp://10.96.0.12:1"}
    done = _run("bootstrap", "--namespace", "Bad_NS", environment=beside)
    assert done.stderr.splitlines()[-1] == (
        f"Error: Invalid value for '--namespace': 'Bad_NS': not valid; allowed: {ALLOWED}"
    )
    assert done.exit_code == 2
