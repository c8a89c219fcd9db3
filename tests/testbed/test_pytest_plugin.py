"""A cluster that the files of a folder share ends after the last of them that needs one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed import pytest_plugin
from testbed.cluster import Cluster
from testbed.options import Options

SMALL = Options(kuberay=False)


@dataclass
class Started:
    """Stands for a cluster."""

    directory: Path
    options: Options
    ended: list[str] = field(default_factory=list)

    def stop(self) -> None:
        self.ended.append("stopped")

    def remove_data(self) -> None:
        self.ended.append("removed")


class Session:
    """Stands for a run of tests."""

    def __init__(self, folder: Path) -> None:
        self.stash = pytest.Stash()
        self.testsfailed = 0
        self.folder = folder

    def mktemp(self, name: str) -> Path:
        made = self.folder / f"{name}-{len(list(self.folder.iterdir()))}"
        (made / "root").mkdir(parents=True)
        return made

    def item(self, path: str, *, needs: bool = True) -> Any:
        marker = object() if needs else None
        return SimpleNamespace(
            session=self, path=self.folder / path, get_closest_marker=lambda _: marker
        )


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(Cluster, "start", Started)
    return Session(tmp_path)


@pytest.fixture
def find(session: Session) -> Callable[[Options], Any]:
    request: Any = SimpleNamespace(session=session)
    factory: Any = session
    return pytest_plugin.folder_cluster.__wrapped__(request, factory)  # type: ignore[attr-defined,no-any-return]


def tear_down(item: Any, then: Any) -> None:
    """Run the hook as pytest does."""
    hook = pytest_plugin.pytest_runtest_teardown(item, then)
    next(hook)
    with pytest.raises(StopIteration):
        next(hook)


def test_the_same_options_are_one_cluster(find: Callable[[Options], Any]) -> None:
    small = find(SMALL)
    assert find(Options(kuberay=False)) is small
    assert find(Options()) is not small


@pytest.mark.parametrize("then", ["other/test_c.py", ""])
def test_it_ends_with_the_folder(
    session: Session, find: Callable[[Options], Any], then: str
) -> None:
    small, whole = find(SMALL), find(Options())
    last = session.item("here/test_b.py")
    tear_down(session.item("here/test_a.py"), last)
    assert small.ended == whole.ended == []
    tear_down(last, session.item(then) if then else None)
    assert small.ended == whole.ended == ["stopped", "removed"]
    assert not small.directory.exists()
    assert find(SMALL) is not small


def test_it_ends_before_the_tests_of_the_folder_that_need_none(
    session: Session, find: Callable[[Options], Any]
) -> None:
    small = find(SMALL)
    tear_down(session.item("here/test_a.py"), session.item("here/test_unit.py", needs=False))
    assert small.ended == ["stopped", "removed"]


def test_after_a_failure_its_logs_stay(session: Session, find: Callable[[Options], Any]) -> None:
    small = find(SMALL)
    session.testsfailed = 1
    tear_down(session.item("here/test_a.py"), None)
    assert small.directory.exists()
