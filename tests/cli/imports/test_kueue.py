"""ClusterQueues become GangQueues; quota of different flavors is never mixed."""

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cli.imports.kueue import read
from cli.imports.outcome import Fault, Outcome
from tests.cli.checks import Json, fields, queues_of, sources, specs, tree_of, tried

GPU = "nvidia.com/gpu"


def made(kind: str, name: str, namespace: str = "", version: str = "v1beta2", **spec: Any) -> Json:
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": name, **place},
        "spec": spec,
    }


def quota(name: str, nominal: object, borrow: object = None, lend: object = None) -> Json:
    limits = {"borrowingLimit": borrow, "lendingLimit": lend}
    said = {key: value for key, value in limits.items() if value is not None}
    return {"name": name, "nominalQuota": nominal, **said}


def group(*flavors: tuple[str, list[Json]]) -> Json:
    covered = [each["name"] for each in flavors[0][1]]
    return {
        "coveredResources": covered,
        "flavors": [{"name": name, "resources": found} for name, found in flavors],
    }


def cluster_queue(name: str, *groups: Json, **spec: Any) -> Json:
    usual = {"namespaceSelector": {}, "resourceGroups": list(groups)}
    return made("ClusterQueue", name, **{**usual, **spec})


def flavor(name: str, **labels: str) -> Json:
    return made("ResourceFlavor", name, nodeLabels=labels)


def imported(*bodies: Json) -> Outcome:
    return read(sources(*bodies))


CPUS = group(("plain", [quota("cpu", 8), quota("memory", "16Gi")]))
PLAIN = flavor("plain")


def test_quota_and_limits_are_those_of_the_cluster_queue() -> None:
    outcome = imported(
        PLAIN,
        cluster_queue(
            "a",
            group(("plain", [quota("cpu", "8500m", 4, "2"), quota("memory", "16Gi")])),
            cohortName="all",
        ),
        cluster_queue("b", CPUS, cohortName="all"),
    )
    found = specs(outcome)
    assert found["a"] == {
        "parent": "all",
        "quota": {"cpu": "8500m", "memory": "16Gi"},
        "borrowingLimit": {"cpu": 4},
        "lendingLimit": {"cpu": "2"},
        "namespaceSelector": {},
    }
    assert found["all"] == {}
    assert outcome.left_out == []
    tree = tree_of(outcome)
    assert tree.most[tree.index["a"], tree.column["cpu"]] == 12_500


def test_v1beta1_has_the_cohort_under_its_old_name() -> None:
    found = specs(imported(PLAIN, made("ClusterQueue", "a", version="v1beta1", cohort="c")))
    assert found["a"] == {"parent": "c"}


def test_cohorts_have_parents_and_quota_and_give_way_to_queues_of_their_name() -> None:
    shared = group(("plain", [quota("cpu", 5, borrow=1, lend=3)]))
    outcome = imported(
        PLAIN,
        cluster_queue("team", CPUS, cohortName="team"),
        made("Cohort", "team", parentName="org", resourceGroups=[shared]),
    )
    found = specs(outcome)
    assert found["team"]["parent"] == "cohort-team"
    assert found["cohort-team"] == {
        "parent": "org",
        "quota": {"cpu": 5},
        "borrowingLimit": {"cpu": 1},
        "lendingLimit": {"cpu": 3},
    }
    assert found["org"] == {}
    assert queues_of(outcome)


def test_a_cohort_without_quota_bounds_what_its_members_lend() -> None:
    shared = group(("plain", [quota("cpu", 0, lend=3)]))
    cohort = made("Cohort", "c", parentName="org", resourceGroups=[shared])
    outcome = imported(PLAIN, cohort, cluster_queue("q", CPUS, cohortName="c"))
    assert specs(outcome)["c"]["lendingLimit"] == {"cpu": 3}
    assert outcome.left_out == []
    assert queues_of(outcome)


def test_two_flavors_are_two_queues_below_one_that_holds_the_rest() -> None:
    gpus = group(("a100", [quota(GPU, 16)]), ("h100", [quota(GPU, 8)]))
    outcome = imported(
        PLAIN,
        flavor("a100", gpu="a100"),
        flavor("h100", gpu="h100"),
        cluster_queue("q", CPUS, gpus, queueingStrategy="StrictFIFO"),
    )
    found = specs(outcome)
    assert found["q"] == {"quota": {"cpu": 8, "memory": "16Gi", GPU: 0}}
    assert found["q-a100"] == {
        "parent": "q",
        "quota": {GPU: 16},
        "borrowingLimit": {GPU: 0},
        "lendingLimit": {GPU: 0},
        "namespaceSelector": {},
        "nodeSelector": {"gpu": "a100"},
        "whenBlocked": "Strict",
    }
    assert found["q-h100"]["nodeSelector"] == {"gpu": "h100"}
    tree = tree_of(outcome)
    most = {name: tree.most[tree.index[name]].tolist() for name in ("q-a100", "q-h100")}
    columns = [tree.column[each] for each in ("cpu", GPU)]
    assert [most["q-a100"][at] for at in columns] == [8000, 16]
    assert [most["q-h100"][at] for at in columns] == [8000, 8]
    assert fields(outcome.left_out) == {("ClusterQueue q", "spec.resourceGroups", "a100, h100")}


def test_members_of_a_cohort_never_borrow_another_flavor() -> None:
    """Kueue would lend no a100 to a queue of h100, and GangQueues know no flavors."""
    outcome = imported(
        flavor("a100"),
        flavor("h100"),
        cluster_queue("a", group(("a100", [quota(GPU, 16)])), cohortName="c"),
        cluster_queue("h", group(("h100", [quota(GPU, 8, borrow=4)])), cohortName="c"),
    )
    tree = tree_of(outcome)
    most = {name: int(tree.most[tree.index[name], tree.column[GPU]]) for name in ("a", "h")}
    assert most == {"a": 16, "h": 8}
    assert ("4, none") in {each.value for each in outcome.left_out}


def test_what_a_queue_does_not_cover_its_gangs_do_not_get() -> None:
    """Also where no queue above it names the resource, so that it would be unlimited."""
    outcome = imported(
        PLAIN,
        flavor("gpus"),
        cluster_queue("cpus", CPUS),
        cluster_queue("gpus", group(("gpus", [quota(GPU, 8), quota("cpu", 4)])), cohortName="c"),
    )
    found = specs(outcome)
    assert found["cpus"]["quota"] == {"cpu": 8, "memory": "16Gi", GPU: 0}
    assert found["gpus"]["quota"] == {"cpu": 4, "memory": 0, GPU: 8}
    assert found["gpus"]["borrowingLimit"] == {"memory": 0}


@pytest.mark.parametrize(
    ("resources", "scope"), [([quota(GPU, 1)], None), ([quota(GPU, 1), quota("cpu", 1)], "All")]
)
def test_a_flavor_holds_the_pods_that_ask_for_its_resources(
    resources: list[Json], scope: str | None
) -> None:
    outcome = imported(flavor("f", pool="gold"), cluster_queue("q", group(("f", resources))))
    found = specs(outcome)["q"]
    assert found["nodeSelector"] == {"pool": "gold"}
    assert found.get("nodeSelectorScope") == scope


def test_namespaces_are_those_that_are_selected_and_have_a_local_queue() -> None:
    outcome = imported(
        PLAIN,
        cluster_queue("q", CPUS, namespaceSelector={"matchLabels": {"team": "x"}}),
        made("LocalQueue", "main", "ns-b", clusterQueue="q"),
        made("LocalQueue", "main", "ns-a", clusterQueue="q"),
        made("LocalQueue", "main", "ns-c", clusterQueue="gone"),
    )
    here = {
        "key": "kubernetes.io/metadata.name",
        "operator": "In",
        "values": ["ns-a", "ns-b"],
    }
    found = specs(outcome)["q"]["namespaceSelector"]
    assert found == {"matchLabels": {"team": "x"}, "matchExpressions": [here]}
    assert fields(outcome.left_out) == {("LocalQueue ns-c/main", "spec.clusterQueue", "gone")}
    said = [each.advice for each in outcome.advice if each.subject == "LocalQueue ns-a/main"]
    assert "kueue.x-k8s.io/queue-name: main becomes muster.dev/queue: q" in said[0]


def test_a_queue_without_selector_takes_no_gangs() -> None:
    local = made("LocalQueue", "l", "ns", clusterQueue="q")
    found = specs(imported(PLAIN, cluster_queue("q", CPUS, namespaceSelector=None), local))
    assert "namespaceSelector" not in found["q"]


@pytest.mark.parametrize(
    ("said", "mapped", "lost"),
    [
        ({"withinClusterQueue": "LowerPriority"}, {"withinQueue": "LowerPriority"}, []),
        (
            {"withinClusterQueue": "LowerOrNewerEqualPriority"},
            {"withinQueue": "LowerPriority"},
            ["spec.preemption.withinClusterQueue"],
        ),
        ({"reclaimWithinCohort": "Any"}, {"reclaim": "Any"}, []),
        ({"reclaimWithinCohort": "LowerPriority"}, {"reclaim": "LowerPriority"}, []),
        ({"withinClusterQueue": "Never", "reclaimWithinCohort": "Never"}, None, []),
        (
            {
                "reclaimWithinCohort": "Any",
                "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 100},
            },
            {
                "reclaim": "Any",
                "whileBorrowing": "LowerPriority",
                "whileBorrowingMaxPriority": 100,
            },
            [],
        ),
    ],
)
def test_preemption(said: Json, mapped: Json | None, lost: list[str]) -> None:
    outcome = imported(PLAIN, cluster_queue("q", CPUS, preemption=said))
    assert specs(outcome)["q"].get("preemption") == mapped
    assert [each.field for each in outcome.left_out] == lost


@pytest.mark.parametrize(
    ("spec", "field", "value"),
    [
        ({"fairSharing": {"weight": "2"}}, "spec.fairSharing.weight", "2"),
        ({"admissionChecks": ["c"]}, "spec.admissionChecks", '["c"]'),
        (
            {"admissionChecksStrategy": {"admissionChecks": [{"name": "c"}]}},
            "spec.admissionChecksStrategy",
            '{"admissionChecks": [{"name": "c"}]}',
        ),
        ({"admissionScope": {"a": "b"}}, "spec.admissionScope", '{"a": "b"}'),
    ],
)
def test_what_has_no_counterpart_is_named(spec: Json, field: str, value: str) -> None:
    outcome = imported(PLAIN, cluster_queue("q", CPUS, **spec))
    assert fields(outcome.left_out) == {("ClusterQueue q", field, value)}


@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
def test_a_queue_that_is_stopped_stays_stopped(policy: str) -> None:
    outcome = imported(PLAIN, cluster_queue("q", CPUS, stopPolicy=policy))
    assert specs(outcome)["q"]["stop"] == policy
    assert outcome.left_out == []


def test_tolerations_topologies_and_priorities_are_named() -> None:
    rich = made(
        "ResourceFlavor", "rich", nodeLabels={"a": "b"}, tolerations=[{}], topologyName="racks"
    )
    high = {**made("WorkloadPriorityClass", "high"), "value": 1000}
    outcome = imported(rich, high, cluster_queue("q", group(("rich", [quota("cpu", 1)]))))
    assert fields(outcome.left_out) == {
        ("ResourceFlavor rich", "spec.tolerations", "[{}]"),
        ("ResourceFlavor rich", "spec.topologyName", "racks"),
        ("WorkloadPriorityClass high", "value", "1000"),
    }


def test_a_flavor_that_is_not_there_is_named() -> None:
    outcome = imported(cluster_queue("q", CPUS))
    assert fields(outcome.left_out) == {("ClusterQueue q", "spec.resourceGroups", "flavor plain")}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (cluster_queue("q", CPUS, queueingStrategy="LIFO"), "spec.queueingStrategy: 'LIFO' is not"),
        (
            cluster_queue("q", CPUS, preemption={"reclaimWithinCohort": "All"}),
            "allowed: Never, LowerPriority, Any",
        ),
        (
            cluster_queue("q", group(("plain", [quota("cpu", "-1")]))),
            "ClusterQueue q: spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: '-1'",
        ),
        (
            cluster_queue("q", group(("f", [quota("cpu", 1, borrow="x")])), cohortName="c"),
            "resources[0].borrowingLimit: 'x' is not valid",
        ),
        (cluster_queue("q", CPUS, CPUS), "plain/cpu is there twice"),
        (cluster_queue("q", namespaceSelector={"matchExpressions": [{"key": "a"}]}), "operator"),
        (made("Cohort", "c", parentName="c"), "the parents form a circle: c -> c"),
        (made("ClusterQueue", "q", resourceGroups="all"), "spec.resourceGroups: Expected"),
        (made("ClusterQueue", ""), "metadata.name: empty or missing"),
    ],
)
def test_a_bad_value_is_named_with_its_place(body: Json, said: str) -> None:
    with pytest.raises(Fault) as caught:
        imported(PLAIN, body)
    assert said in str(caught.value)


FLAVORS = st.sampled_from(["f", "g"])
COHORTS = st.sampled_from(["", "c", "d", "q0"])
SHARES = st.builds(
    quota,
    st.sampled_from(["cpu", GPU]),
    st.sampled_from([0, 4, "1500m"]),
    st.sampled_from([None, 0, 2]),
    st.sampled_from([None, 0, 2, 9]),
)
GROUPS = st.lists(
    st.lists(st.tuples(FLAVORS, st.lists(SHARES, max_size=2)), min_size=1, max_size=2).map(
        lambda each: group(*each)
    ),
    max_size=2,
)


@given(
    st.lists(st.tuples(COHORTS, GROUPS), min_size=1, max_size=3),
    st.dictionaries(st.sampled_from(["c", "d"]), st.tuples(COHORTS, GROUPS), max_size=2),
)
def test_any_queues_and_cohorts_give_queues_that_work_or_a_fault(
    queues: list[tuple[str, list[Json]]], cohorts: dict[str, tuple[str, list[Json]]]
) -> None:
    bodies = [
        cluster_queue(f"q{at}", *groups, **({"cohortName": cohort} if cohort else {}))
        for at, (cohort, groups) in enumerate(queues)
    ] + [
        made("Cohort", name, parentName=parent, resourceGroups=groups)
        for name, (parent, groups) in cohorts.items()
    ]
    outcome, fault = tried(imported, *bodies)
    event("a fault" if fault else "queues")
    found = queues_of(outcome)
    assert {each.parent for each in found.values()} - {""} <= set(found)
    assert fault.startswith(("ClusterQueue q", "Cohort ")) if fault else found
