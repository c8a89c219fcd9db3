"""Labels of zone and region on volumes."""

from scheduling.model.pod import Mount
from scheduling.model.volume import (
    Volume,
)
from tests.builders import group, node
from tests.scheduling.filters.volumes.claims import (
    HEAD,
    NODES,
    ZONE,
    bound,
    decide,
    ephemeral,
    table,
    where,
    why,
)


def test_labels_of_zone_on_a_volume_count_where_a_node_has_any() -> None:
    known = table(bound(), Volume("pv", zones=((ZONE, ("b", "c")),)))
    assert where(decide(known, HEAD)) == {"b1"}
    assert where(decide(known, HEAD, nodes=[node("plain")])) == {"plain"}
    assert why(decide(known, HEAD, nodes=NODES[:2])).endswith(
        '(2 nodes: 2 are ruled out by VolumeZone: volume claim "data")'
    )


def test_the_old_label_of_a_volume_is_matched_by_the_new_one_of_nodes_that_lack_it() -> None:
    old = "failure-domain.beta.kubernetes.io/zone"
    known = table(bound(), Volume("pv", zones=((old, ("b",)),)))
    nodes = [*NODES, node("c1", cpu=4, labels={ZONE: "b", old: "a"})]
    assert where(decide(known, HEAD, nodes=nodes)) == {"b1"}


def test_a_generic_ephemeral_volume_is_not_asked_for_its_labels_of_zone() -> None:
    known = table(bound("p-s", owner="uid"), Volume("pv", zones=((ZONE, ("z",)),)))
    own = {"w": [Mount("p-s", "s", "uid")]}
    assert where(decide(known, group("w", 1, ephemeral("s")), mounts=own))
