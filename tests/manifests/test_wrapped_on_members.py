"""What AppWrappers of a manager may wrap on a member is in a role of its own."""

from pathlib import Path

import yaml

from testbed.manifests import MANIFESTS
from tests.manifests.base import Json

MEMBER = MANIFESTS / "member" / "dispatcher-rbac.yaml"
WRAPPER = MANIFESTS / "app-wrapper" / "wrapped-objects-rbac.yaml"


def role(path: Path, name: str) -> set[tuple[str, str, str]]:
    """The rights of a ClusterRole: group, resource and verb."""
    objects: list[Json] = list(yaml.safe_load_all(path.read_text()))
    (found,) = (e for e in objects if e["kind"] == "ClusterRole" and e["metadata"]["name"] == name)
    return {
        (group, resource, verb)
        for rule in found["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_role_creates_alone_and_no_more_than_the_wrapper_may() -> None:
    found = role(MEMBER, "muster-dispatcher-member-wrapped")
    assert found <= role(WRAPPER, "muster-wrapped-workloads")
    assert {verb for _, _, verb in found} == {"create"}
    assert not {resource for _, resource, _ in found} & {"secrets", "roles", "rolebindings"}


def test_the_dispatcher_reads_and_deletes_none_of_that() -> None:
    groups = {group for group, _, _ in role(MEMBER, "muster-dispatcher-member")}
    assert groups == {"muster.dev", "ray.io", "workload.codeflare.dev", "mcad.ibm.com", ""}
    core = {each for each in role(MEMBER, "muster-dispatcher-member") if not each[0]}
    assert core == {("", "events", "list"), ("", "events", "watch")}
