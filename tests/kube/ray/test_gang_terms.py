"""Pod sets and minimum are counted as KubeRay counts them, and tenants' mistakes are named."""

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects import names
from kube.objects.base import ObjectMeta
from kube.objects.ray import RayCluster, RayClusterSpec, WorkerGroup
from kube.ray import gang_terms as ray_terms
from kube.ray.gang_terms import (
    GangTerms,
    Misconfigured,
    PodSetTerms,
    TopologyTerms,
    bad_priority_class,
    gang_terms,
    parse_duration,
)
from kube.ray.ray_cluster import (
    LONGEST_VALUE,
    essential,
)
from scheduling.model.queue import Queue
from scheduling.queueing.membership import Selections
from tests.kube.ray.clusters import GPU, Json, cluster

ODD = {names.OPT_IN: "True"}

LONG = "workergroup=" + "1" * LONGEST_VALUE


TOPOLOGY = (names.TOPOLOGY_REQUIRED, names.TOPOLOGY_PREFERRED, names.REPLICA_TOPOLOGY_REQUIRED)


def open_to_all(*queues: str) -> Selections:
    return Selections({name: Queue(name, namespaces=()) for name in queues})


def terms(found: RayCluster, queues: tuple[str, ...] = ()) -> GangTerms:
    result = gang_terms(found, {}, open_to_all(*queues))
    assert isinstance(result, GangTerms), result
    return result


def complaint(found: RayCluster, namespace_labels: dict[str, str] | None = None) -> str:
    result = gang_terms(found, namespace_labels or {}, open_to_all("research"))
    assert isinstance(result, Misconfigured), result
    return result.message


def workers(found: RayCluster) -> tuple[int, int]:
    """Count and minimum of the one worker group."""
    head, group = terms(found).pod_sets
    assert head == PodSetTerms("headgroup", 1, 1, 1)
    return group.count, group.minimum


def test_bad_opt_in_is_named_with_where_it_stands() -> None:
    message = complaint(cluster(labels=ODD))
    assert message == ('label muster.dev/gang: "True" is not valid; allowed: "true" or "false"')
    assert "namespace label muster.dev/gang" in complaint(cluster(), {names.OPT_IN: "yes"})


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ({"replicas": 4, "minReplicas": 1, "maxReplicas": 8}, (4, 4)),
        ({"replicas": 0, "minReplicas": 2, "maxReplicas": 8}, (2, 2)),
        ({"replicas": 9, "minReplicas": 1, "maxReplicas": 8}, (8, 8)),
        ({"replicas": None, "minReplicas": 3, "maxReplicas": 8}, (3, 3)),
        ({"replicas": 5}, (5, 5)),
        ({}, (0, 0)),
        ({"replicas": 3, "numOfHosts": 4}, (12, 12)),
        ({"replicas": 3, "numOfHosts": 0}, (0, 0)),
        ({"replicas": 3, "suspend": True}, (0, 0)),
        ({"replicas": 3, "suspend": False}, (3, 3)),
        ({"replicas": -3, "minReplicas": -1}, (0, 0)),
        ({"replicas": 1, "minReplicas": 5, "maxReplicas": 2}, (5, 5)),
        ({"replicas": 10_000, "maxReplicas": 10_000}, (10_000, 10_000)),
        ({"replicas": 2**31 - 1, "numOfHosts": 2**31 - 1}, ((2**31 - 1) ** 2,) * 2),
    ],
)
def test_workers_are_counted_as_kuberay_counts_them(group: Json, expected: tuple[int, int]) -> None:
    assert workers(cluster({"groupName": "gpu", **group})) == expected


@given(
    *[st.none() | st.integers(-2, 12)] * 3,
    st.none() | st.integers(0, 3),
    st.none() | st.booleans(),
    st.booleans(),
)
def test_minimum_never_exceeds_the_count(
    replicas: int | None,
    least: int | None,
    most: int | None,
    hosts: int | None,
    suspended: bool | None,
    autoscaled: bool,
) -> None:
    group = WorkerGroup("gpu", replicas, least, most, hosts, suspended)
    raw = msgspec.json.decode(msgspec.json.encode(group))
    count, minimum = workers(cluster(raw, enableInTreeAutoscaling=autoscaled))
    assert 0 <= minimum <= count
    if not autoscaled:
        assert minimum == count


def test_with_the_autoscaler_min_replicas_must_start_at_once() -> None:
    assert workers(cluster(GPU, enableInTreeAutoscaling=True)) == (4, 1)
    hosts = {**GPU, "numOfHosts": 2}
    assert workers(cluster(hosts, enableInTreeAutoscaling=True)) == (8, 2)


def test_a_cluster_of_a_head_alone() -> None:
    assert terms(cluster()).pod_sets == (PodSetTerms("headgroup", 1, 1, 1),)


def test_suspended_cluster_has_no_pods() -> None:
    found = terms(cluster(GPU, suspend=True))
    assert [(each.name, each.count, each.minimum) for each in found.pod_sets] == [
        ("headgroup", 0, 0),
        ("gpu", 0, 0),
    ]


def test_ten_thousand_workers_cost_nothing() -> None:
    groups = [
        {**GPU, "groupName": f"g{i}", "replicas": 100, "maxReplicas": 100} for i in range(100)
    ]
    annotation = ",".join(f"g{i}=50" for i in range(100))
    start = time.process_time()
    found = terms(cluster(*groups, annotations={names.MIN_REPLICAS: annotation}))
    assert time.process_time() - start < 10  # no hours, as with a look at every pair
    assert sum(each.count for each in found.pod_sets) == 10_001
    assert sum(each.minimum for each in found.pod_sets) == 5_001


def with_minimum(text: str, *groups: Json, **spec: Any) -> RayCluster:
    return cluster(*(groups or (GPU,)), annotations={names.MIN_REPLICAS: text}, **spec)


@pytest.mark.parametrize("text", ["gpu=2", " gpu = 2 ", "gpu=02"])
def test_annotation_sets_the_minimum_in_replicas(text: str) -> None:
    assert workers(with_minimum(text)) == (4, 2)
    assert workers(with_minimum(text, {**GPU, "numOfHosts": 3})) == (12, 6)


def test_annotation_names_some_groups_and_leaves_the_others() -> None:
    groups = (GPU, {**GPU, "groupName": "cpu"}, {**GPU, "groupName": "tpu"})
    found = terms(with_minimum("gpu=1,tpu=0", *groups))
    assert [each.minimum for each in found.pod_sets] == [1, 1, 4, 0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cpu=1", "allowed: GROUP=NUMBER[,...] with GROUP a worker group: gpu"),
        ("cpu=1", 'min-replicas: "cpu=1" is not valid'),
        ("gpu", 'min-replicas: "gpu" is not valid; allowed: a whole number'),
        ("gpu=", 'min-replicas: "gpu=" is not valid; allowed: a whole number'),
        ("gpu=two", "a whole number from 0 on for gpu"),
        ("gpu=-1", "a whole number from 0 on for gpu"),
        ("gpu=1.0", "a whole number from 0 on for gpu"),
        ("gpu=\u0662", "a whole number from 0 on for gpu"),
        ("gpu=1_0", "a whole number from 0 on for gpu"),
        ("gpu=" + "9" * 5000, "a whole number from 0 on for gpu"),
        ("gpu=1,gpu=1", "each worker group once"),
        ("gpu=1,", "GROUP=NUMBER"),
        ("headgroup=1", "GROUP=NUMBER"),
        ("gpu=5", "allowed: 0 to 4 (minimum above replicas)"),
    ],
)  # fmt: skip
def test_bad_minimum_names_key_value_and_what_is_allowed(text: str, said: str) -> None:
    message = complaint(with_minimum(text))
    assert message.startswith("muster.dev/min-replicas: ")
    assert said in message
    assert len(message) < 500


def test_with_the_autoscaler_the_minimum_may_go_up_to_max_replicas() -> None:
    # KubeRay makes 4 now; a wait for a fifth would last for ever.
    assert workers(with_minimum("gpu=8", enableInTreeAutoscaling=True)) == (4, 4)
    message = complaint(with_minimum("gpu=9", enableInTreeAutoscaling=True))
    assert "allowed: 0 to 8 (minimum above maxReplicas)" in message


def test_suspending_a_group_does_not_make_its_minimum_wrong() -> None:
    assert workers(with_minimum("gpu=2", {**GPU, "suspend": True})) == (0, 0)


def test_a_cluster_without_worker_groups_says_that_there_are_none() -> None:
    message = complaint(cluster(annotations={names.MIN_REPLICAS: "gpu=1"}))
    assert "(there is none)" in message


@pytest.mark.parametrize("key", [names.OPT_IN, names.MIN_REPLICAS, names.QUEUE])
def test_of_a_cluster_only_our_annotations_are_kept_and_nothing_long(key: str) -> None:
    """What is cut was of no use, and is not taken for something else."""
    others = {"kubectl.kubernetes.io/last-applied-configuration": "x" * 200_000}
    meta = ObjectMeta("a", "team", "u", annotations={key: LONG, names.TOPOLOGY_REQUIRED: "z"})
    whole = msgspec.structs.replace(
        meta, annotations={**meta.annotations, **others}, labels={"app": "x", names.QUEUE: "q"}
    )
    kept = essential(RayCluster(whole)).metadata
    assert kept.annotations.keys() == meta.annotations.keys()
    assert len(kept.annotations[key]) == LONGEST_VALUE + 3
    assert (kept.labels, kept.uid, kept.namespace) == ({names.QUEUE: "q"}, "u", "team")
    group = WorkerGroup("workergroup", replicas=1, max_replicas=9)
    made = RayCluster(kept, RayClusterSpec((group,)))
    assert isinstance(gang_terms(made, {}, open_to_all("q")), Misconfigured) is (key != names.QUEUE)


def test_of_too_many_worker_groups_none_is_kept() -> None:
    groups = [{"groupName": f"g{number}", "replicas": 1} for number in range(1001)]
    kept = essential(cluster(*groups))
    assert kept.spec.worker_group_specs == ()
    assert complaint(kept) == 'workerGroupSpecs: "1001" is not valid; allowed: at most 1000'
    fine = essential(cluster(*groups[:1000], groupsLeftOut=7))
    assert len(terms(fine).pod_sets) == 1001


def test_what_is_not_said_has_defaults() -> None:
    found = terms(cluster())
    assert (found.queue, found.priority_class) == ("default", "")
    assert (found.expected_duration, found.topology) == (None, None)


@pytest.mark.parametrize("key", [names.QUEUE, names.PRIORITY_CLASS])
def test_queue_and_priority_class_may_be_label_or_annotation(key: str) -> None:
    def read(found: RayCluster) -> str:
        said = terms(found, ("research", "other") if key == names.QUEUE else ())
        return said.queue if key == names.QUEUE else said.priority_class

    assert read(cluster(labels={key: "research"})) == "research"
    assert read(cluster(annotations={key: "research"})) == "research"
    assert read(cluster(labels={key: "research"}, annotations={key: "other"})) == "research"


def test_an_unknown_queue_is_told_with_those_that_are_open() -> None:
    message = complaint(cluster(labels={names.QUEUE: "nope"}))
    assert message == (
        'muster.dev/queue: "nope" is not valid; allowed: a queue that is open to the namespace: '
        "research (GangQueue nope does not exist)"
    )


def test_an_unknown_priority_class_is_said_alike() -> None:
    assert bad_priority_class("top", "team", ["low", "high"], None, "SETTING").message == (
        'muster.dev/priority-class: "top" is not valid; allowed: high, low; '
        "there is no PriorityClass of that name"
    )


def test_of_a_class_that_is_too_high_the_two_remedies_are_named() -> None:
    message = bad_priority_class("top", "team", [], -5, "SETTING").message
    assert "allowed: (there is none); it is above -5, the lowest priority of the gang's" in message
    assert "priorityClassName in every pod template" in message
    assert message.endswith("allow it for namespace team in SETTING")


def test_a_long_list_of_what_exists_is_cut() -> None:
    usable = [f"c{i:02}" for i in range(13)]
    assert "c09 and 3 more;" in bad_priority_class("x", "team", usable, None, "").message


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2h30m", 9000.0),
        ("90s", 90.0),
        ("1.5h", 5400.0),
        (".5m", 30.0),
        ("1.s", 1.0),
        ("100ms", 0.1),
        ("1m1ms", 60.001),
        ("5us", 5e-6),
        ("5µs", 5e-6),
        ("0h1s", 1.0),
        ("", None),
        ("0", None),
        ("0s", None),
        ("-5m", None),
        ("+5m", None),
        ("5", None),
        ("5d", None),
        ("h", None),
        (".s", None),
        ("2h 30m", None),
        ("2H", None),
        ("1e3s", None),
        ("\u0665s", None),
        ("9999999999h", None),
        ("1h" * 5000, None),
    ],
)  # fmt: skip
def test_durations_are_written_as_in_go(text: str, seconds: float | None) -> None:
    found = parse_duration(text)
    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("part", ["1", "1h", ".", "1.", ".1", "h"])
def test_a_duration_as_long_as_an_annotation_is_refused_unread(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant's annotation must not hold up the loop; the longest is 256 KiB."""
    monkeypatch.setattr(ray_terms, "_DURATION_PART", None)
    assert parse_duration(part * (250_000 // len(part))) is None


def test_a_duration_is_read_once_from_left_to_right() -> None:
    """The longest text that is looked at, of digits only, and one that is all parts."""
    assert parse_duration("1" * 120) is None
    assert parse_duration("1s" * 60) == 60


def test_expected_duration_is_read_or_complained_about() -> None:
    assert terms(cluster(annotations={names.EXPECTED_DURATION: "2h"})).expected_duration == 7200
    message = complaint(cluster(annotations={names.EXPECTED_DURATION: "2 hours"}))
    assert 'muster.dev/expected-duration: "2 hours" is not valid' in message
    assert "2h30m" in message


@pytest.mark.parametrize("value", ["topology.kubernetes.io/zone", "rack", "a.b/c_D.e"])
def test_topology_is_understood(value: str) -> None:
    def read(*keys: str) -> TopologyTerms | None:
        return terms(cluster(annotations=dict.fromkeys(keys, value))).topology

    assert read(names.TOPOLOGY_REQUIRED) == TopologyTerms(required=value)
    assert read(names.TOPOLOGY_PREFERRED) == TopologyTerms(preferred=value)
    assert read(names.REPLICA_TOPOLOGY_REQUIRED) == TopologyTerms(replica=value)
    assert read(names.TOPOLOGY_REQUIRED, names.REPLICA_TOPOLOGY_REQUIRED) == TopologyTerms(
        required=value, replica=value
    )


@pytest.mark.parametrize("key", TOPOLOGY)
@pytest.mark.parametrize("value", ["", "a b", "/zone", "a/b/c", "-a", "a/", "UP.er/x", "x" * 64])
def test_topology_that_is_no_label_key_is_misconfigured(key: str, value: str) -> None:
    message = complaint(cluster(annotations={key: value}))
    assert message.startswith(f'{key}: "{value}" is not valid; allowed: the key of a node label')


@pytest.mark.parametrize(
    "groups",
    [
        (GPU, GPU),
        ({**GPU, "groupName": "headgroup"},),
        ({**GPU, "groupName": ""},),
        ({**GPU, "groupName": "g" * 64},),
    ],
)
def test_pod_sets_need_names_of_their_own(groups: tuple[Json, ...]) -> None:
    assert complaint(cluster(*groups)).startswith("workerGroupSpecs.groupName: ")


def test_all_mistakes_are_said_at_once() -> None:
    annotations = {names.EXPECTED_DURATION: "x", names.MIN_REPLICAS: "gpu=-1"}
    message = complaint(cluster(GPU, annotations=annotations, labels=ODD))
    for key in (names.OPT_IN, names.EXPECTED_DURATION, names.MIN_REPLICAS):
        assert key in message


@given(
    st.dictionaries(
        st.sampled_from(
            sorted(
                {
                    names.OPT_IN,
                    names.QUEUE,
                    names.MIN_REPLICAS,
                    names.EXPECTED_DURATION,
                    names.PRIORITY_CLASS,
                    names.TOPOLOGY_REQUIRED,
                }
            )
        ),
        st.text() | st.from_regex(r"(gpu|x)?=?-?[0-9]*,?", fullmatch=True),
    )
)
def test_whatever_tenants_write_is_read_or_refused_and_raises_nothing(
    annotations: dict[str, str],
) -> None:
    result = gang_terms(cluster(GPU, annotations=annotations), annotations)
    assert isinstance(result, GangTerms) or result.message


def test_a_huge_annotation_is_answered_quickly_and_briefly() -> None:
    text = ",".join(f"g{i}=x" for i in range(40_000))
    start = time.process_time()
    message = complaint(with_minimum(text))
    assert time.process_time() - start < 10  # no hours, as with a look at every pair
    assert len(message) < 2000
