"""There is no key in the repository."""

import re
import stat
from pathlib import Path

from tests.packaging.tree import ROOT, files

# A whole block: the marker alone stands in code that writes or looks for keys.
KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=\s]{64,}")
# Git leaves these out (.gitignore), so a key made in the work tree is no mistake.
IGNORED = {".key", ".pem", ".crt", ".p12", ".log"}


def test_no_file_holds_a_private_key() -> None:
    found = [
        path.relative_to(ROOT)
        for path in files()
        if path.suffix not in IGNORED
        and stat.S_ISREG(path.stat().st_mode)
        and KEY.search(path.read_bytes())
    ]
    assert found == []


def test_what_tools_write_meanwhile_is_not_looked_at(tmp_path: Path) -> None:
    """Other tests run at the same time, and what one of them writes may be gone when it is read."""
    for folder in (".hypothesis/examples", ".pytest_cache", "kube"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "found").touch()
    assert list(files(tmp_path)) == [tmp_path / "kube" / "found"]


def test_git_leaves_keys_out() -> None:
    rules = (ROOT / ".gitignore").read_text().splitlines()
    assert {"*.key", "*.pem", "*.crt", "*.p12", ".venv", "/out/"} <= set(rules)


def test_the_rule_knows_a_key() -> None:
    begin, body = b"-----BEGIN EC PRIVATE KEY-----", b"A" * 64
    assert KEY.search(begin + b"\n" + body)
    assert not KEY.search(begin + b'"' + body)
