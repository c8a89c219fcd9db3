"""What must not matter to a verdict, in the oracle's worlds, without a control plane.

The worlds are those of `python -m tests.oracle`; what is asked is the whole way from manifests to
the verdict.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from random import Random

import pytest

from kube.codec.volumes.storage import BIND_COMPLETED
from scheduling.model.verdict import Reason, Refusal
from tests.examples import every_other, one_in
from tests.oracle.ingredients import INGREDIENTS
from tests.oracle.judge import faults
from tests.oracle.model import PRIORITIES, Json, World, name_of, namespace_labels, scene
from tests.oracle.question import Yes, ask
from tests.oracle.search import holds, possible
from tests.oracle.worlds import world

WORLDS = 150
MORE_WORLDS, BLOCKS, LEAST_TRIED = 600, 6, 10
SEEDS = [f"properties/{at}" for at in range(WORLDS)]
TRIES = 3000
COUNTED_ON = {"pod affinity", "series", "topology spread"}
"""With these a pod less may be a pod too few."""


def as_stored(drawn: World) -> World:
    """Fill in what the API server and the controller of volumes would."""
    for pod in (*drawn.residents, *drawn.gang):
        pod["metadata"]["uid"] = f"{pod['metadata']['namespace']}/{name_of(pod)}"
        pod["spec"]["priority"] = PRIORITIES.get(pod["spec"].get("priorityClassName", ""), 0)
    for each in drawn.objects:
        if each["kind"] == "PersistentVolumeClaim" and "volumeName" in each["spec"]:
            each["metadata"]["annotations"] = {BIND_COMPLETED: "yes"}
        if each["kind"] == "PersistentVolume" and "claimRef" not in each["spec"]:
            each["status"] = {"phase": "Available"}
    return drawn


def verdict(asked: World) -> Yes | Refusal:
    labels = {name: namespace_labels(asked.slot, name) for name in asked.namespaces}
    spaces = [{"metadata": {"name": name, "labels": each}} for name, each in labels.items()]
    return ask(asked, spaces)


def answer(asked: World) -> str:
    """Return the kind of the verdict."""
    said = verdict(asked)
    return "Admitted" if isinstance(said, Yes) else str(said.reason)


def renamed(asked: World, name: Callable[[int], str]) -> World:
    """Give the nodes other names, wherever they are named."""
    text = json.dumps(asdict(asked))
    for at, node in enumerate(asked.nodes):
        text = text.replace(f'"{name_of(node)}"', json.dumps(name(at)))
    return World(**json.loads(text))


def permuted(asked: World, chance: Random) -> World:
    def shuffled(manifests: list[Json]) -> list[Json]:
        return chance.sample(manifests, len(manifests))

    return replace(
        asked,
        nodes=shuffled(asked.nodes),
        residents=shuffled(asked.residents),
        gang=shuffled(asked.gang),
        objects=shuffled(asked.objects),
    )


def with_a_useless_node(asked: World, name: str) -> World:
    """Add a node that the gang does not select, in no domain."""
    status = {"allocatable": {"cpu": "9", "memory": "9Gi", "pods": "9"}}
    added = {"metadata": {"name": name, "labels": {}}, "spec": {}, "status": status}
    return replace(asked, nodes=[*asked.nodes, added])


@pytest.mark.parametrize("seed", one_in(3, SEEDS))
def test_what_does_not_matter_changes_no_answer(seed: str) -> None:
    """Names of nodes, the order of everything, and a node that takes no pod of the gang."""
    asked = as_stored(world("w", seed).world)
    before = answer(asked)
    assert answer(renamed(asked, lambda at: f"m{at}")) == before
    assert answer(renamed(asked, lambda at: f"m{9 - at}")) == before
    assert answer(permuted(asked, Random(seed))) == before
    assert answer(with_a_useless_node(asked, "a")) == before
    assert answer(with_a_useless_node(asked, "z")) == before


def test_all_that_is_counted_on_is_in_the_worlds() -> None:
    assert {each.name for each in INGREDIENTS} >= COUNTED_ON


@pytest.mark.parametrize("block", every_other(range(BLOCKS)))
def test_less_load_turns_no_yes_into_a_no(block: int) -> None:
    """Whichever pod leaves, a gang that was admitted still is, unless it counted on that pod."""
    tried = 0
    for at in range(block, MORE_WORLDS, BLOCKS):
        drawn = world("w", f"properties/{at}")
        asked = as_stored(drawn.world)
        if drawn.present & COUNTED_ON or answer(asked) != "Admitted":
            continue
        for pod in asked.residents:
            fewer = [each for each in asked.residents if each is not pod]
            assert answer(replace(asked, residents=fewer)) == "Admitted", (at, name_of(pod))
            tried += 1
    assert tried >= LEAST_TRIED


@pytest.mark.parametrize("seed", one_in(3, SEEDS))
def test_an_answer_agrees_with_trying_everything(seed: str) -> None:
    """Every yes can be bound as it stands, and where the answer is a certain no there is no way."""
    drawn = world("w", seed)
    asked = as_stored(drawn.world)
    said, before = verdict(asked), scene(asked)
    if isinstance(said, Yes):
        nodes = {name_of(node): node for node in asked.nodes}
        assert not list(faults([(pod, nodes[node]) for pod, node in said.pods], before))
        assert holds(before, [[(pod, nodes[node]) for pod, node in wave] for wave in said.waves])
    elif said.reason not in (Reason.UNDECIDED, Reason.UNSUPPORTED):
        assert not possible(before, asked.gang, drawn.present, TRIES)
