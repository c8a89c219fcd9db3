"""A placement in Gang.status is read back as it was written, and a bad one is named."""

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.codec.fields import InvalidObject
from kube.codec.placement import placement_from_status, placement_to_status
from kube.objects.gang import GangPlacement
from scheduling.model.placement import Assignment, Placement
from tests.kube.codec.pods import Json

resource_names = st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "pods", "ephemeral-storage"])


node_names = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?", fullmatch=True)


amounts = st.dictionaries(resource_names, st.integers(0, (2**63 - 1) // 10_000)).map(
    lambda found: tuple(sorted(found.items()))
)


counts = st.dictionaries(node_names, st.integers(1, 10_000), max_size=4).map(
    lambda found: tuple(sorted(found.items()))
)


assignments = st.builds(
    Assignment,
    pod_set=st.sampled_from(["headgroup", "gpu", "cpu"]),
    replica=st.sampled_from(["", "gpu-abcde"]),
    shape=st.from_regex(r"[0-9a-f]{12}", fullmatch=True),
    requests=amounts,
    nodes=counts,
    wave=st.integers(0, 3),
)


def through_json(placement: Placement, epoch: int) -> GangPlacement:
    """Write it the way it goes to the API server, which sorts the keys of maps."""
    written = placement_to_status(placement, epoch)
    return msgspec.json.decode(
        orjson.dumps(written, option=orjson.OPT_SORT_KEYS), type=GangPlacement
    )


@given(st.lists(assignments, max_size=6), st.integers(0, 2**31))
def test_a_placement_is_read_back_as_it_was(found: list[Assignment], epoch: int) -> None:
    placement = Placement(tuple(sorted(found, key=lambda each: each.pod_set)))
    written = through_json(placement, epoch)
    assert written.epoch == epoch
    assert placement_from_status(written) == placement
    assert len({each.name for each in written.pod_sets}) == len(written.pod_sets)


@given(st.lists(assignments, max_size=6))
def test_no_assignment_is_lost_in_any_order(found: list[Assignment]) -> None:
    back = placement_from_status(through_json(Placement(tuple(found)), 1))
    assert sorted(back.assignments, key=repr) == sorted(found, key=repr)


def test_amounts_and_nodes_come_sorted_whatever_order_they_were_written_in() -> None:
    shape = {"requests": {"pods": "1", "cpu": "1"}, "nodes": {"n2": 1, "n1": 3}}
    raw = {"podSets": [{"name": "gpu", "assignments": [shape]}]}
    (found,) = placement_from_status(msgspec.convert(raw, GangPlacement)).assignments
    assert found.requests == (("cpu", 1000), ("pods", 1))
    assert found.nodes == (("n1", 3), ("n2", 1))


def test_what_a_placement_looks_like() -> None:
    requests = (("cpu", 1500), ("memory", 2**30), ("pods", 1))
    placement = Placement((Assignment("gpu", "", "0123456789ab", requests, (("n1", 2),)),))
    assert placement_to_status(placement, 7) == {
        "epoch": 7,
        "podSets": [
            {
                "name": "gpu",
                "assignments": [
                    {
                        "shape": "0123456789ab",
                        "replica": "",
                        "requests": {"cpu": "1500m", "memory": "1073741824", "pods": "1"},
                        "nodes": {"n1": 2},
                    }
                ],
            }
        ],
    }


def test_a_wave_is_written_where_it_is_not_the_first() -> None:
    """So a placement without waves looks as it did before there were any."""
    waves = [Assignment("gpu", "", "0123456789ab", (), (("n1", 2),), wave) for wave in (0, 1)]
    [pod_set] = placement_to_status(Placement(tuple(waves)), 7)["podSets"]
    assert [each.get("wave") for each in pod_set["assignments"]] == [None, 1]


@pytest.mark.parametrize(
    ("edited", "field"),
    [
        ({"nodes": {"n1": 0}}, "status.placement of gpu nodes[n1]"),
        ({"nodes": {"n1": -2}}, "status.placement of gpu nodes[n1]"),
        ({"nodes": {"n1": 2**20 + 1}}, "status.placement of gpu nodes[n1]"),
        ({"nodes": {"n1": 2}, "requests": {"memory": "7E"}}, "status.placement of gpu nodes[n1]"),
        ({"requests": {"cpu": "lots"}}, "status.placement of gpu requests[cpu]"),
        ({"wave": -1}, "status.placement of gpu wave"),
        ({"wave": 2**31 + 1}, "status.placement of gpu wave"),
    ],
)
def test_a_placement_edited_into_nonsense_is_named(edited: Json, field: str) -> None:
    raw = {"podSets": [{"name": "gpu", "assignments": [edited]}]}
    with pytest.raises(InvalidObject) as caught:
        placement_from_status(msgspec.convert(raw, GangPlacement))
    assert caught.value.field == field
