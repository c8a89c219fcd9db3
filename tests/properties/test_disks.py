"""Made-up amounts for disks that pods name themselves against the rule of kube-scheduler."""

from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kube.codec import pod_shape, pod_used
from kube.objects import Pod
from scheduling.fit import count_fit
from tests.builders import columns, node

Json = dict[str, Any]

NAMES = st.sampled_from("xy")
READS = st.sampled_from([{}, {"readOnly": False}, {"readOnly": True}])
KINDS = st.one_of(
    st.builds(lambda n, r: {"gcePersistentDisk": {"pdName": n, **r}}, NAMES, READS),
    st.builds(lambda n, r: {"awsElasticBlockStore": {"volumeID": n, **r}}, NAMES, READS),
    st.builds(lambda n, r: {"iscsi": {"iqn": n, "targetPortal": "t", **r}}, NAMES, READS),
    st.builds(
        lambda m, p, n, r: {"rbd": {"monitors": m, "pool": p, "image": n, **r}},
        st.lists(st.sampled_from(["m1", "m2", "m3"]), min_size=1, max_size=3),
        st.sampled_from(["p", "q"]),
        NAMES,
        READS,
    ),
    st.builds(lambda n: {"azureDisk": {"diskName": n, "diskURI": n}}, NAMES),
    st.builds(lambda n: {"cinder": {"volumeID": n}}, NAMES),
)
PODS = st.lists(KINDS, max_size=3)


def clash(one: Json, other: Json) -> bool:
    """Say whether two disks get in each other's way, word by word as isVolumeConflict does."""
    [(kind, mine)], [(same, theirs)] = one.items(), other.items()
    if kind != same or kind in ("azureDisk", "cinder"):
        return False
    both_read = mine.get("readOnly", False) and theirs.get("readOnly", False)
    match kind:
        case "gcePersistentDisk":
            return mine["pdName"] == theirs["pdName"] and not both_read
        case "awsElasticBlockStore":
            return bool(mine["volumeID"] == theirs["volumeID"])
        case "iscsi":
            return mine["iqn"] == theirs["iqn"] and not both_read
        case _:
            met = {*mine["monitors"]} & {*theirs["monitors"]}
            same_image = (mine["pool"], mine["image"]) == (theirs["pool"], theirs["image"])
            return bool(met) and same_image and not both_read


def clashes(one: list[Json], other: list[Json]) -> bool:
    return any(clash(mine, theirs) for mine in one for theirs in other)


def pod(volumes: list[Json]) -> Pod:
    named: Iterator[Json] = ({"name": f"v{at}", **each} for at, each in enumerate(volumes))
    return msgspec.convert({"spec": {"volumes": list(named)}}, Pod)


@given(st.lists(PODS, max_size=4), PODS)
def test_a_pod_fits_where_no_pod_keeps_one_of_its_disks(
    offered: list[list[Json]], wanted: list[Json]
) -> None:
    """Whatever stands on the node, as long as it may stand there together."""
    standing: list[list[Json]] = []
    for each in offered:
        if not any(clashes(each, other) for other in standing):
            standing.append(each)
    used: dict[str, int] = {}
    for each in standing:
        for name, amount in pod_used(pod(each)).items():
            used[name] = used.get(name, 0) + amount
    asking = pod_shape(pod(wanted))
    [fitting] = count_fit(asking, columns(node("n"), used={"n": used}, asked=[asking]))
    assert bool(fitting) is not any(clashes(wanted, other) for other in standing)


@given(PODS)
def test_members_of_a_gang_keep_each_other_out_as_pods_that_stand_do(wanted: list[Json]) -> None:
    asking = pod_shape(pod(wanted))
    [fitting] = count_fit(asking, columns(node("n"), asked=[asking]))
    assert (fitting > 1) is not clashes(wanted, wanted)
