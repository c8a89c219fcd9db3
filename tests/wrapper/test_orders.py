"""Whatever happens in whatever order, what is announced is done, once, and nothing else."""

import copy
import itertools
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.wrapper.fake_api import over_quota, refused, unanswered
from tests.wrapper.world import World, codeflare, config_map, job, with_wrapper

ALLOWED = {
    "": {"Suspended", "Resuming"},
    "Suspended": {"Resuming"},
    "Resuming": {"Running", "Suspending", "Resetting", "Failed"},
    "Running": {"Suspending", "Resetting", "Failed", "Succeeded"},
    "Suspending": {"Suspended"},
    "Resetting": {"Suspended"},
    "Succeeded": set(),
    "Failed": set(),
}


def suspended(world: World, value: bool) -> None:
    before = copy.deepcopy(world.api.objects["appwrappers", "aw"])
    meta = {**before["metadata"], "generation": before["metadata"]["generation"] + 1}
    spec = {**before["spec"], "suspend": value}
    world.api.change("appwrappers", "aw", spec=spec, metadata=meta)


def lose(world: World, plural: str, name: str) -> None:
    """Remove an object and, as the garbage collector does, the pods that it made."""
    if (plural, name) in world.api.objects:
        world.api.remove(plural, name)
        for pod in world.pods_of(name):
            world.api.remove("pods", pod["metadata"]["name"])


DEEDS: dict[str, Callable[[World], None]] = {
    "place": lambda w: w.place(),
    "unplace": lambda w: w.gang("Waiting", placed=False),
    "resumed": lambda w: w.gang("Resumed", placed=True),
    "stop": lambda w: w.stop(),
    "no gang": lambda w: lose(w, "gangs", "appwrapper.aw"),
    "suspend": lambda w: suspended(w, True),
    "resume": lambda w: suspended(w, False),
    "no answers": lambda w: w.api.refuse.update(jobs=unanswered()),
    "no quota": lambda w: w.api.refuse.update(jobs=over_quota()),
    "invalid": lambda w: w.api.refuse.update(configmaps=refused("no")),
    "no refusals": lambda w: w.api.refuse.clear(),
    "run": lambda w: w.pods_become("Running"),
    "end": lambda w: w.pods_become("Succeeded"),
    "lose a job": lambda w: lose(w, "jobs", "work"),
    "lose news": lambda w: w.api.news.clear(),
    "new leader": lambda w: w.lead(),
    "a second": lambda w: w.settle(1),
    "a minute": lambda w: w.settle(60),
    "an hour": lambda w: w.settle(3600),
}


@examples(80, otherwise=20)
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(DEEDS)), st.sampled_from([0, 0, 3, 120])), max_size=25
    ),
    st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=3),
)
def test_any_order_of_events(deeds: list[tuple[str, int]], deaths: list[tuple[int, bool]]) -> None:
    world = with_wrapper(codeflare(config_map(), job()))
    for name, seconds in deeds:
        if deaths and world.api.die_at is None:
            after, late = deaths.pop()
            world.api.die_at, world.api.dies_late = world.api.requests + after, late
        DEEDS[name](world)
        world.settle(seconds)
    path = ["", *world.api.phases]
    assert all(b in ALLOWED[a] for a, b in itertools.pairwise(path)), path
    world.lead()  # what was lost is listed anew
    world.api.refuse.clear()
    world.api.die_at = None
    world.settle(3600)
    resting = world.phase
    assert resting in ("Suspended", "Running", "Succeeded", "Failed"), resting
    assert resting in ("Running", "Succeeded") or world.items == []
