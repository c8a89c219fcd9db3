"""What goes to a member of a RayCluster, and what comes back."""

from typing import Any

import msgspec

from dispatcher.copies import copy_body, offer_body, why_never, wishes_patch
from dispatcher.mirroring import DISPATCHED, differs, status_of, status_without_copy
from dispatcher.reading import (
    MANAGER,
    ORIGIN,
    SENT,
    Answer,
    Copy,
    Original,
    RayObject,
    copy_of,
    original_of,
)
from kube.objects import names
from kube.objects.clusters.gang_offer import FINALIZER
from kube.ray.known_keys import unknown_keys
from tests.dispatcher.objects import meta, original, ray_cluster

ANSWER = Answer(meta("offer", "uid-offer"), "m", "uid-train", 1, 1, "Started", "", "")


def copied(found: Original, **more: Any) -> Copy:
    body = copy_body(found, ANSWER, "m")
    body["metadata"] |= {"uid": "uid-copy", "resourceVersion": "7", "generation": 3}
    return copy_of(msgspec.json.decode(msgspec.json.encode({**body, **more}), type=RayObject))


def test_no_key_of_a_copy_is_told_as_unknown_on_its_member() -> None:
    meta = copy_body(original("train"), ANSWER, "m")["metadata"]
    assert {MANAGER, ORIGIN} <= meta["labels"].keys()
    assert unknown_keys(meta["labels"], meta["annotations"]) == ""


def test_an_offer_has_all_that_the_ray_cluster_asks_for_and_is_not_accepted() -> None:
    body = offer_body(original("train"), 2, "m", 0)
    assert body["metadata"]["name"] == "train-uid-train-2"
    assert "acceptedBy" not in body["spec"]
    assert body["metadata"]["finalizers"] == [FINALIZER], "its member need not write that"
    template = body["spec"]["template"]
    assert template["labels"] == {names.QUEUE: "all", names.OPT_IN: "true"}
    assert template["spec"]["workerGroupSpecs"] == [{"groupName": "workers", "replicas": 2}]
    assert "managedBy" not in template["spec"]


def test_a_copy_is_owned_by_its_offer_and_says_whose_it_is() -> None:
    notes = {"team": "ml", names.HELD: "x", "kubectl.kubernetes.io/last-applied-configuration": "y"}
    body = copy_body(original("train", annotations=notes), ANSWER, "m")
    found = body["metadata"]
    assert (found["labels"][MANAGER], found["labels"][ORIGIN]) == ("m", "uid-train")
    assert {*found["annotations"]} == {"team", SENT}
    assert found["ownerReferences"][0]["uid"] == "uid-offer"


def test_only_what_kuberay_leaves_alone_is_an_original() -> None:
    found = ray_cluster("train")
    assert original_of(found) is not None
    local = RayObject(found.metadata, msgspec.Raw(b'{"workerGroupSpecs":[]}'))
    assert original_of(local) is None


def test_what_cannot_be_sent_says_why() -> None:
    assert why_never(original("train")) == ""
    assert "63 characters" in why_never(original("x" * 64))
    queued = {"kueue.x-k8s.io/queue-name": "q"}
    assert "Kueue" in why_never(original("train", labels=queued))


def test_what_the_member_scaled_is_left_to_it_when_its_user_suspends() -> None:
    before = original("train", workers=2)
    scaled = copied(before)
    assert wishes_patch(before, scaled) == []
    after = original("train", workers=2, suspend=True)
    paths = [each["path"] for each in wishes_patch(after, scaled)]
    assert paths == [
        "/metadata/resourceVersion",
        "/spec/suspend",
        f"/metadata/annotations/{SENT.replace('/', '~1')}",
    ]


def test_a_group_that_the_copy_does_not_have_is_passed_over() -> None:
    other = original("train")
    spec = {"workerGroupSpecs": [{"groupName": "others", "replicas": 1}]}
    scaled = original("train", workers=5)
    assert len(wishes_patch(scaled, copied(other, spec=spec))) == 2


def test_a_status_counts_generations_of_its_original() -> None:
    found = original("train", generation=4)
    seen = copied(found, status={"state": "ready", "observedGeneration": 3})
    assert status_of(found, seen, "east")["observedGeneration"] == 4
    behind = copied(found, status={"state": "ready", "observedGeneration": 2})
    assert status_of(found, behind, "east")["observedGeneration"] == 0


def test_a_condition_names_the_cluster_beside_those_of_kuberay() -> None:
    found = original("train")
    told = [{"type": "HeadPodReady", "status": "True"}]
    status = status_of(found, copied(found, status={"conditions": told}), "east")
    assert [each["type"] for each in status["conditions"]] == ["HeadPodReady", DISPATCHED]
    assert differs(found, status)


def test_who_never_had_a_copy_is_told_nothing() -> None:
    assert status_without_copy(original("train"), "it waits", "2026-01-01T00:00:00Z") is None
