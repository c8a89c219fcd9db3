"""What KubeRay does with each change of a living RayCluster, and what is refused."""

from typing import Any

import pytest

from cli.managing.changes import Edit, Effect, judge_edit
from tests.cli.managing.clusters import Json, cluster, group, pods, with_changes

FIRST = "spec__workerGroupSpecs__0__"


def effects(old: Json, new: Json) -> dict[str, Effect]:
    return {each.field: each.effect for each in judge_edit(old, new).changes}


def judged(old: Json | None = None, **changes: Any) -> Edit:
    found = old or cluster()
    return judge_edit(found, with_changes(found, **changes))


NOW, LATER, NEVER = Effect.NOW, Effect.LATER, Effect.NEVER


@pytest.mark.parametrize(
    ("path", "value", "field", "effect"),
    [
        (f"{FIRST}replicas", 3, "workers.replicas", NOW),
        (f"{FIRST}minReplicas", 1, "workers.minReplicas", NOW),
        (f"{FIRST}maxReplicas", 9, "workers.maxReplicas", NOW),
        (f"{FIRST}scaleStrategy", {"workersToDelete": ["a"]}, "workers.scaleStrategy", NOW),
        ("spec__suspend", True, "suspend", NOW),
        ("spec__autoscalerOptions__upscalingMode", "Aggressive", None, NOW),
        ("spec__autoscalerOptions__idleTimeoutSeconds", 9, None, NOW),
        ("spec__autoscalerOptions__image", "other", None, LATER),
        ("spec__enableInTreeAutoscaling", True, None, LATER),
        ("spec__rayVersion", "2.53.0", "rayVersion", LATER),
        ("spec__headGroupSpec__template", pods("ray:2"), "headGroupSpec.template", LATER),
        ("spec__headGroupSpec__serviceType", "NodePort", None, LATER),
        (f"{FIRST}template", pods("ray:2"), "workers.template", LATER),
        (f"{FIRST}rayStartParams", {"num-cpus": "1"}, "workers.rayStartParams", LATER),
        (f"{FIRST}numOfHosts", 2, "workers.numOfHosts", NEVER),
        (f"{FIRST}suspend", True, "workers.suspend", NEVER),
        ("spec__gcsFaultToleranceOptions", {"redisAddress": "r"}, None, NEVER),
        ("spec__authOptions__mode", "token", "authOptions", NEVER),
        ("spec__managedBy", "kueue.x-k8s.io/multikueue", "managedBy", NEVER),
        ("metadata__labels__muster.dev/queue", "q", "labels[muster.dev/queue]", NOW),
        ("metadata__labels__muster.dev/head-fault-tolerance", "built-in", None, NEVER),
        ("metadata__annotations__ray.io/ft-enabled", "true", None, NEVER),
    ],
)
def test_a_change_holds_when_kuberay_honours_it(
    path: str, value: Any, field: str | None, effect: Effect
) -> None:
    (found,) = judged(**{path: value}).changes
    assert found.effect is effect
    assert found.field == field or field is None
    if effect is NEVER and "suspend" not in path:
        assert "muster create NEW --like train" in found.said


def test_fault_tolerance_cannot_be_taken_out_of_a_living_one_either() -> None:
    old = cluster(gcsFaultToleranceOptions={"redisAddress": "r"})
    assert effects(old, cluster()) == {"gcsFaultToleranceOptions": NEVER}


def test_replicas_are_the_autoscalers_where_that_is_on() -> None:
    old = cluster(enableInTreeAutoscaling=True)
    (found,) = judged(old, **{f"{FIRST}replicas": 3}).changes
    assert found.effect is NEVER
    assert "muster scale" in found.said
    (found,) = judged(old, **{f"{FIRST}minReplicas": 1}).changes
    assert (found.effect, found.said) == (NOW, "0 -> 1, now")


def test_a_new_group_is_made_and_the_pods_of_a_removed_one_would_stay() -> None:
    one, two = cluster("train", group("a")), cluster("train", group("a"), group("b"))
    assert effects(one, two) == {"new group b": NOW}
    assert effects(two, one) == {"removed group b": NEVER}
    renamed = cluster("train", group("c"))
    assert effects(one, renamed) == {"removed group a": NEVER, "new group c": NOW}
    (removed,) = judge_edit(two, one).changes
    assert "muster scale train b=0" in removed.said


def test_null_and_an_empty_list_are_as_good_as_absent() -> None:
    old = cluster()
    new = with_changes(old, spec__managedBy=None, spec__headGroupSpec__headService=None)
    assert judge_edit(old, with_changes(new, **{f"{FIRST}scaleStrategy": {}})).changes == ()
    assert judge_edit(old, with_changes(new, spec__autoscalerOptions={"env": []})).changes == ()


RECREATE = {"type": "Recreate"}


@pytest.mark.parametrize(
    ("path", "value", "recreates"),
    [
        (f"{FIRST}replicas", 3, False),
        (f"{FIRST}minReplicas", 1, False),
        (f"{FIRST}maxReplicas", 9, False),
        (f"{FIRST}scaleStrategy", {"workersToDelete": ["a"]}, False),
        (f"{FIRST}template__spec__tolerations", [{"key": "a"}], False),
        (f"{FIRST}template__spec__schedulingGates", [{"name": "a"}], False),
        ("spec__headGroupSpec__template__spec__tolerations", [{"key": "a"}], False),
        ("spec__upgradeStrategy", {"type": "None"}, False),
        ("metadata__labels__muster.dev/queue", "q", False),
        (f"{FIRST}template", pods("ray:2"), True),
        ("spec__rayVersion", "2.53.0", True),
        ("spec__suspend", False, True),
        ("spec__autoscalerOptions__idleTimeoutSeconds", 9, True),
    ],
)
def test_recreate_deletes_all_pods_for_what_kuberay_compares(
    path: str, value: Any, recreates: bool
) -> None:
    assert judged(cluster(upgradeStrategy=RECREATE), **{path: value}).recreates is recreates
    assert not judged(**{path: value}).recreates


def test_with_all_pods_made_anew_everything_holds_now_and_a_group_may_go() -> None:
    old = cluster("train", group("a"), group("b"), upgradeStrategy=RECREATE)
    new = with_changes(old, spec__workerGroupSpecs=[group("a", template=pods("ray:2"))])
    found = judge_edit(old, new)
    assert found.recreates
    assert {each.field: each.effect for each in found.changes} == {
        "removed group b": NOW,
        "a.template": NOW,
    }
    stored = with_changes(old, spec__gcsFaultToleranceOptions={"redisAddress": "r"})
    assert effects(old, stored) == {"gcsFaultToleranceOptions": NEVER}


def test_to_begin_with_recreate_counts_as_recreating() -> None:
    assert judged(spec__upgradeStrategy=RECREATE).recreates


def test_one_that_is_suspended_has_no_pods_that_could_keep_anything() -> None:
    old = with_changes(cluster(), spec__suspend=True, status__state="suspended")
    found = judged(old, **{f"{FIRST}template": pods("ray:2")})
    assert [each.effect for each in found.changes] == [NOW]
    ending = with_changes(old, status__state="ready")
    found = judged(ending, **{f"{FIRST}template": pods("ray:2")})
    assert [each.effect for each in found.changes] == [LATER]
