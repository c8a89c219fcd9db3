"""What held Ray clusters cost is told against gated ones."""

import json

from benchmarks.backlog import GANGS
from benchmarks.held import GATED, HELD, Waiting, bodies, rows
from kube.objects import names


def waiting(pods: int, seconds: float) -> Waiting:
    cpu = {"kube-apiserver": 2 * seconds, "ray-operator": seconds, "driver": 100.0}
    return Waiting(pods, 2 * pods + 600, 1.0, 100.0, cpu, seconds, seconds + 1, cpu)


def test_held_ones_are_told_against_gated_ones_with_an_aim_for_their_start() -> None:
    found = {row.name: row for row in rows([waiting(1200, 10.0)], [waiting(0, 12.0)])}
    assert {(row.ours_are, row.floor_is) for row in found.values()} == {(HELD, GATED)}
    assert found["pods of those that wait"].ratios == (0.0,)
    assert found["CPU of all programs until all wait"].ours == (36.0,)
    start = found["room begins to be freed to last pod bound"]
    assert (start.ratios, start.met) == ((1.2,), True)
    *_, late = (row for row in rows([waiting(0, 10.0)], [waiting(0, 14.0)]) if row.aim)
    assert late.met is False


def test_held_and_gated_ones_differ_by_the_annotation_alone() -> None:
    gated, held = json.loads(bodies(GATED, 0)[0]), json.loads(bodies(HELD, 0)[0])
    asked = held["metadata"].pop("annotations")
    assert asked == {names.CREATE_PODS: names.CREATE_WHEN_ADMITTED}
    gated["metadata"].pop("name")
    held["metadata"].pop("name")
    assert gated == held
    assert len(bodies(HELD, 1)) == GANGS
