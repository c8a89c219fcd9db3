"""A cluster's options are completed with what only the cluster knows."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml

from testbed.credentials import Identity, write_kubeconfig, write_token_file
from testbed.errors import TestbedError
from testbed.options import scheduler_configuration

KUBECONFIG = Path("own.kubeconfig")


def test_a_scheduler_configuration_keeps_its_own_and_gets_the_connection(tmp_path: Path) -> None:
    given = {"extenders": [{"urlPrefix": "http://127.0.0.1:1"}], "parallelism": 3}
    path = tmp_path / "scheduler.yaml"
    path.write_text(yaml.safe_dump(given))
    for source in (given, path):
        complete = scheduler_configuration(source, KUBECONFIG)
        assert given.items() <= complete.items()
        assert complete["kind"] == "KubeSchedulerConfiguration"
        assert complete["leaderElection"] == {"leaderElect": False}
        assert complete["clientConnection"] == {
            "kubeconfig": "own.kubeconfig",
            "qps": 5000,
            "burst": 10000,
        }


def test_what_is_no_scheduler_configuration_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text("- a")
    with pytest.raises(TestbedError, match="not a KubeSchedulerConfiguration"):
        scheduler_configuration(path, KUBECONFIG)


def test_several_groups_are_one_field_of_the_token_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    write_token_file(path, [Identity("a", "user:a", ("g", "h"), token="t")])
    with path.open() as handle:
        assert list(csv.reader(handle)) == [["t", "user:a", "user:a", "g,h"]]


def test_a_kubeconfig_names_server_authority_and_token(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "k", "https://127.0.0.1:1", Path("ca.crt"), "t")
    config = json.loads(path.read_text())
    assert config["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:1",
        "certificate-authority": "ca.crt",
    }
    assert config["users"][0]["user"] == {"token": "t"}
