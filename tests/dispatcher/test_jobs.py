"""RayJobs and RayServices that are sent: each runs once, and a job's end is kept for good."""

from dataclasses import replace

import msgspec
import pytest

from dispatcher.copies import copy_body, offer_body, wishes_patch
from dispatcher.messages import (
    HERE,
    CreateCopy,
    Gone,
    MirrorStatus,
    PatchCopy,
    Seen,
    WithdrawOffer,
)
from dispatcher.mirroring import status_of, status_without_copy
from dispatcher.reading import MANAGER, ORIGIN, Answer, Copy, Original, RayObject, copy_of
from kube.objects import names
from kube.objects.clusters.dispatch import CLOSED, STARTED
from kube.objects.clusters.queue_clusters import QueueClusters
from tests.dispatcher.objects import MANAGER as OF_MANAGER
from tests.dispatcher.objects import meta, original
from tests.dispatcher.world import World

ANSWER = Answer(meta("offer", "uid-offer"), "m", "uid-train", 1, 1, "Started", "", "")
NESTED = {"RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}
EAST_FIRST = QueueClusters(order=("east", "west"))


def copied(found: Original) -> Copy:
    body = copy_body(found, ANSWER, "m")
    body["metadata"] |= {"uid": "uid-copy", "resourceVersion": "7", "generation": 3}
    whole = msgspec.json.decode(msgspec.json.encode(body), type=RayObject)
    return copy_of(whole, found.kind)


@pytest.mark.parametrize("kind", ["RayJob", "RayService"])
def test_a_copy_has_managed_by_nowhere_and_says_what_its_raycluster_is_made_for(kind: str) -> None:
    found = original("train", kind)
    spec = msgspec.json.decode(found.spec)
    spec[NESTED[kind]]["managedBy"] = names.MANAGED_ELSEWHERE
    found = replace(found, spec=msgspec.json.encode(spec))
    assert offer_body(found, 1, "m", 0)["spec"]["template"]["kind"] == kind
    body = copy_body(found, ANSWER, "m")
    assert body["kind"] == kind
    assert b"managedBy" not in msgspec.json.encode(body["spec"])
    assert body["metadata"]["annotations"][names.MADE_FOR] == "offer/uid-offer"


def test_suspend_of_a_rayjob_goes_down_once() -> None:
    before = original("train", "RayJob")
    copy = copied(before)
    assert wishes_patch(before, copy) == []
    scaled = original("train", "RayJob", workers=5)
    assert wishes_patch(scaled, copy) == []  # KubeRay would disregard it
    (_, change, noted) = wishes_patch(original("train", "RayJob", suspend=True), copy)
    assert (change["path"], change["value"]) == ("/spec/suspend", True)
    assert (
        wishes_patch(original("train", "RayJob", suspend=True), replace(copy, sent=noted["value"]))
        == []
    )


def test_another_spec_of_a_rayservice_goes_down_whole_and_once() -> None:
    before = original("train", "RayService")
    copy = copied(before)
    assert wishes_patch(before, copy) == []
    after = original("train", "RayService", workers=5)
    (_, change, noted) = wishes_patch(after, copy)
    assert change["path"] == "/spec"
    assert change["value"]["rayClusterConfig"]["workerGroupSpecs"][0]["replicas"] == 5
    assert b"managedBy" not in msgspec.json.encode(change)
    assert wishes_patch(after, replace(copy, sent=noted["value"])) == []


def test_the_status_of_a_rayjob_has_no_conditions_and_that_of_a_rayservice_has() -> None:
    job = original("train", "RayJob")
    assert "conditions" not in status_of(job, copied(job), "east")
    assert status_without_copy(job, "it waits", "") is None
    back = replace(job, status=b'{"jobDeploymentStatus":"Running"}')
    assert status_without_copy(back, "it waits", "") == {"message": "it waits"}
    service = original("train", "RayService")
    assert status_of(service, copied(service), "east")["conditions"]


def runs(kind: str = "RayJob") -> World:
    world = World(EAST_FIRST, east=1, west=1)
    world.submit("train", kind=kind)
    world.settle(3.0)
    assert world.runs() == {"train": ["east"]}
    (copy,) = world.written(CreateCopy)
    assert copy.body["kind"] == kind
    return world


def ends(world: World, reason: str) -> None:
    """Have the member close what it has of the gang; a copy that ended stays."""
    copies = dict(world.members["east"].copies)
    world.close("east", "train", reason)
    world.members["east"].copies = copies


@pytest.mark.parametrize("reason", ["JobComplete", "JobFailed", "JobGone"])
def test_a_job_that_ended_is_never_sent_again(reason: str) -> None:
    world = runs()
    world.report("east", "train", jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
    ends(world, reason)
    world.settle(100.0)
    record = world.dispatch("train")
    assert (record.phase, record.end, record.attempt) == (CLOSED, reason, 1)
    assert not [each for each in world.written(WithdrawOffer) if each.member == "east"]
    world.lead()
    world.settle(100.0)
    assert world.dispatch("train").attempt == 1
    assert len(world.written(CreateCopy)) == 1
    assert world.statuses["train"]["jobDeploymentStatus"] == "Complete"
    world.delete("train")
    world.settle(3.0)
    assert not world.members["east"].answers


@pytest.mark.parametrize(
    ("reason", "state"),
    [("JobComplete", "Complete"), ("JobFailed", "Failed"), ("JobGone", "Failed")],
)
def test_a_copy_that_went_before_its_end_was_read_is_told_by_the_word_of_its_member(
    reason: str, state: str
) -> None:
    world = runs()
    world.report("east", "train", jobDeploymentStatus="Running", jobId="7")
    world.settle(1.0)
    copy = world.members["east"].copies["uid-train"]
    world.close("east", "train", reason)
    world.tell(Gone("east", copy))
    world.settle(3.0)
    assert world.statuses["train"]["jobDeploymentStatus"] == state
    assert world.statuses["train"]["jobId"] == "7"
    assert reason in world.statuses["train"]["message"]
    count = len(world.written(MirrorStatus))
    world.settle(30.0)
    assert len(world.written(MirrorStatus)) == count


def test_a_job_that_its_member_stopped_goes_on_elsewhere() -> None:
    world = runs()
    world.close("east", "train", "Stopped")
    world.settle(5.0)
    assert world.runs() == {"train": ["west"]}
    assert world.dispatch("train").end == ""


def test_a_gang_that_was_deleted_by_hand_gets_the_record_of_its_end_back() -> None:
    world = runs()
    ends(world, "JobFailed")
    world.settle(1.0)
    turn = world.turns.pop("train")
    world.tell(Gone(HERE, turn))
    world.write_turn("train", is_its_turn=True)
    world.settle(5.0)
    record = world.dispatch("train")
    assert (record.phase, record.end, record.cluster) == (CLOSED, "JobFailed", "east")
    assert len(world.written(CreateCopy)) == 1


def test_a_service_that_was_deleted_on_its_member_goes_on() -> None:
    world = runs("RayService")
    world.close("east", "train", "Ended")
    world.settle(5.0)
    assert world.dispatch("train").phase == STARTED
    assert len(world.written(CreateCopy)) == 2


def test_the_raycluster_that_kuberay_makes_of_a_copy_is_not_taken_for_it() -> None:
    """KubeRay gives it the labels of its RayService."""
    world = runs("RayService")
    labels = {MANAGER: OF_MANAGER, ORIGIN: "uid-train"}
    found = meta("train-x", "uid-child", labels=labels, resource_version="90")
    child = copy_of(RayObject(found, msgspec.Raw(b"{}")))
    world.tell(Seen("east", child))
    world.edit("train", kind="RayService", workers=5)
    (patch,) = world.written(PatchCopy)
    assert patch.copy.metadata.name == "train"
    world.tell(Gone("east", child))
    world.edit("train", kind="RayService", workers=6)
    assert len(world.written(PatchCopy)) == 2


def test_a_raycluster_of_another_namespace_that_says_it_is_the_copy_is_not_believed() -> None:
    """A tenant of a member may write any label and any owner in a namespace of its own."""
    world = runs("RayService")
    true = world.members["east"].copies["uid-train"]
    elsewhere = msgspec.structs.replace(true.metadata, namespace="others", uid="uid-forged")
    forged = replace(true, metadata=elsewhere, status=b'{"forged": true}')
    written = len(world.written(MirrorStatus))
    world.tell(Seen("east", forged))
    assert len(world.written(MirrorStatus)) == written
    world.tell(Gone("east", forged))
    world.edit("train", kind="RayService", workers=5)
    (patch,) = world.written(PatchCopy)
    assert patch.copy.metadata.uid == true.metadata.uid
