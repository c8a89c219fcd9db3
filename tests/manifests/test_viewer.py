"""The role for viewers lists what the commands read beyond a namespace, and nothing else."""

import pytest
import yaml

from tests.cli.commands_run import cluster
from tests.cli.fake_reader import FakeReader, run
from tests.cli.report.room.test_devices import device_objects
from tests.cli.test_commands import ALL
from tests.packaging.tree import ROOT

FOLDER = ROOT / "manifests" / "viewer"
OF_A_NAMESPACE = {"events", "rayjobs", "rayservices", "rayclusters"}
"""What `view` of a namespace gives already."""
IF_ALLOWED = {"clusterrolebindings", "deployments"}
"""Where the coordinator runs, and its settings; whoever may not read them is shown the defaults."""


def granted() -> dict[str, set[str]]:
    """The verbs by resource."""
    (role,) = yaml.safe_load_all((FOLDER / "rbac.yaml").read_text())
    assert (role["kind"], role["metadata"]["name"]) == ("ClusterRole", "muster-viewer")
    return {
        resource: set(rule["verbs"]) for rule in role["rules"] for resource in rule["resources"]
    }


def test_the_component_names_its_one_file_and_binds_the_role_to_nothing() -> None:
    (found,) = yaml.safe_load_all((FOLDER / "kustomization.yaml").read_text())
    assert found["kind"] == "Component"
    assert found["resources"] == ["rbac.yaml"]
    assert {path.name for path in FOLDER.iterdir()} == {"kustomization.yaml", "rbac.yaml"}


def test_what_the_commands_list_is_granted_and_no_more() -> None:
    asked: set[str] = set()
    for arguments in ALL:
        reader = FakeReader({**device_objects(), **cluster()})
        assert run(reader, *arguments).exit_code == 0
        asked |= {plural for plural, _, _ in reader.asked}
    assert asked - OF_A_NAMESPACE - IF_ALLOWED == set(granted())
    assert set.union(*granted().values()) == {"get", "list"}


@pytest.mark.parametrize("resource", ["nodes", "pods", "gangqueues"])
def test_single_objects_are_read_of_gangs_alone(resource: str) -> None:
    assert granted()[resource] == {"list"}
