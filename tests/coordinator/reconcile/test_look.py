"""The steps of a look are taken in order, and the gang is surveyed where one asks for it."""

import pytest

from coordinator.messages.actions import Action, DeleteGang
from coordinator.reconcile import look as looks
from coordinator.reconcile.advance import BEGIN, STEPS
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, StepResult, run
from coordinator.reconcile.surveying import take_survey
from coordinator.state.gang_looks import scene_of
from tests.coordinator.builders import gang_of, node
from tests.coordinator.deeds import decided
from tests.coordinator.world import World, key


def look_at_a_gang() -> Look:
    """A gang that is decided and of which nothing is released."""
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    decided(world)
    known = world.leader.state.known
    source = known.cache.sources[key("a")]
    return Look(known.views[key("a")], source, scene_of(known, world.leader._moment()))


def test_the_gang_is_surveyed_after_a_step_that_says_so_and_only_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[str] = []

    def step(name: str, done: StepResult) -> looks.Step:
        def taken(_: Look) -> StepResult:
            found.append(name)
            return done

        return taken

    look = look_at_a_gang()
    monkeypatch.setattr(looks, "take_survey", lambda *_: found.append("survey"))
    gone: list[Action] = [DeleteGang(key("a"), "uid")]
    steps = [step("a", NOTHING_DONE), step("b", SURVEY_AGAIN), step("c", StepResult(gone))]
    run(steps, look)
    assert found == ["a", "b", "survey", "c"]
    assert look.actions == gone


def test_a_gang_whose_node_vanished_is_surveyed_without_its_placement() -> None:
    look = look_at_a_gang()
    view = look.view
    assert sum(each.vacant for each in view.survey.standing) == 3
    look.scene.cache.remove_node("n1")
    view.pod_writes.inflight.clear()
    view.pod_writes.targets.clear()
    run((*BEGIN, *STEPS), look)
    assert view.reservation.placement is None
    assert sum(each.vacant for each in view.survey.standing) == 0
    before = view.survey.standing
    take_survey(view, look.pods)
    assert view.survey.standing == before
