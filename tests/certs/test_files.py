"""A key on disk is readable by its owner only, and never half written."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from certs.chain import Pair
from certs.files import write_pair

OLD = Pair(b"old certificate", b"old key")
NEW = Pair(b"new certificate", b"new key")


@pytest.fixture
def careless_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("careless_umask")
def test_only_the_owner_may_read(tmp_path: Path) -> None:
    directory = tmp_path / "pki"
    write_pair(directory, NEW, b"ca")
    assert _mode(directory) == 0o700
    assert {path.name: _mode(path) for path in directory.iterdir()} == {
        "ca.crt": 0o600,
        "tls.crt": 0o600,
        "tls.key": 0o600,
    }


def test_an_open_directory_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    write_pair(tmp_path, NEW, b"ca")
    assert _mode(tmp_path) == 0o700


def test_a_file_is_replaced_not_rewritten(tmp_path: Path) -> None:
    """A reader that holds the old file open reads the old content to its end."""
    write_pair(tmp_path, OLD, b"ca")
    with (tmp_path / "tls.key").open("rb") as held:
        write_pair(tmp_path, NEW, b"ca")
        assert held.read() == b"old key"
    assert (tmp_path / "tls.key").read_bytes() == b"new key"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_planted_draft_is_not_written_into(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"theirs")
    directory = tmp_path / "pki"
    directory.mkdir()
    (directory / f".tls.key.{os.getpid()}").symlink_to(outside)
    write_pair(directory, NEW, b"ca")
    assert outside.read_bytes() == b"theirs"


def test_the_certificate_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off between the two renames, the old certificate is still the one being watched."""
    write_pair(tmp_path, OLD, b"ca")
    replace = Path.replace

    def cut(self: Path, target: Path) -> Path:
        if target.name == "tls.crt":
            raise OSError("power cut")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", cut)
    with pytest.raises(OSError, match="power cut"):
        write_pair(tmp_path, NEW, b"ca")
    assert (tmp_path / "tls.crt").read_bytes() == b"old certificate"
