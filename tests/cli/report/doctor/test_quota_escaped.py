"""Doctor finds what escapes all quota."""

import pytest

from cli.report.doctor.checks import examine
from cli.report.doctor.findings import State
from kube.objects import names
from tests.cli.report.doctor.clusters import Json, gang_queue, namespace, ray_object, seen, states

QUOTA = {"nvidia.com/gpu": 80}
OPTED_IN = [namespace("team", **{names.OPT_IN: "true"})]
NO_GANG = {names.OPT_IN: "false"}


@pytest.mark.parametrize(
    ("changed", "check", "said"),
    [
        ({"namespaces": [namespace("team"), namespace("b")]}, "quota", "namespace b is selected"),
        (
            {"namespaces": [namespace(f"n{each}") for each in range(7)]},
            "quota",
            "namespaces n0, n1, n2, n3, n4 and 2 more are selected by no GangQueue: no quota",
        ),
        (
            {
                "namespaces": [namespace("b")],
                "queues": [gang_queue("default", {}), gang_queue("q", QUOTA)],
            },
            "quota",
            "namespace b is selected by no GangQueue",
        ),
        (
            {"namespaces": OPTED_IN, "ray_clusters": [ray_object("a", "team", labels=NO_GANG)]},
            "opted out",
            "RayCluster team/a is opted out of its namespace, and in no queue: no quota bounds",
        ),
        (
            {
                "namespaces": OPTED_IN,
                "ray_clusters": [ray_object("a", "team", annotations=NO_GANG)],
            },
            "opted out",
            "RayCluster team/a is opted out",
        ),
    ],
)
def test_what_escapes_all_quota_is_named(changed: Json, check: str, said: str) -> None:
    (found,) = (each for each in examine(seen(**changed)).findings if each.check == check)
    assert found.state is State.WARN
    assert found.message.startswith(said)
    assert "docs/queues.md" in found.remedy


@pytest.mark.parametrize("kind", ["ResourcesLimited", "UsageCounted"])
def test_a_queue_of_which_a_rule_does_nothing_is_named(kind: str) -> None:
    """A resource that is unlimited in it alone, or usage that does not count."""
    told = {"type": kind, "status": "False", "message": "spec.quota: cpu is ..."}
    queue = {**gang_queue("q", QUOTA), "status": {"conditions": [told]}}
    (found,) = (e for e in examine(seen(queues=[queue])).findings if e.check == "quota")
    assert (found.state, found.message) == (State.WARN, "GangQueue q: spec.quota: cpu is ...")


@pytest.mark.parametrize(
    "changed",
    [
        {"queues": []},
        {"queues": [gang_queue("q", {}, team="other")]},
        {
            "namespaces": [namespace("b")],
            "queues": [gang_queue("q", QUOTA), gang_queue("default", {"cpu": 0}, team="none")],
        },
        {"ray_clusters": [ray_object("a", "team", labels=NO_GANG)]},
        {"namespaces": OPTED_IN, "ray_clusters": [ray_object("a", "team")]},
    ],
)
def test_where_nothing_escapes_quota_nothing_is_said(changed: Json) -> None:
    assert states(seen(**changed))["quota"] is State.OK
