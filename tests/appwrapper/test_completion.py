"""An AppWrapper is complete where its items are, by MCAD's completionstatus or their own status."""

from typing import Any

import pytest

from appwrapper.completion import Completion, completion, words
from kube.objects.app_wrapper import AppWrapper
from tests.appwrapper.samples import (
    Json,
    codeflare,
    config_map,
    deployment,
    fine,
    job,
    mcad,
    mcad_item,
    obj,
    pod_spec,
    ray_cluster,
    ray_spec,
)


def condition(kind: str, status: str = "True") -> Json:
    return {"conditions": [{"type": kind, "status": status}]}


def judged(found: AppWrapper, *statuses: Any, pods_left: int = 0) -> Completion:
    wrapped = fine(found)
    by_item = {each.key: status for each, status in zip(wrapped.items, statuses, strict=True)}
    return completion(wrapped, by_item, pods_left=pods_left)


@pytest.mark.parametrize(
    ("asked", "status", "found"),
    [
        ("Complete", condition("Complete"), Completion.SUCCEEDED),
        ("complete, failed", condition("Failed"), Completion.SUCCEEDED),
        ("Comp", condition("JobCompleted"), Completion.SUCCEEDED),
        ("Complete", condition("Complete", "Unknown"), Completion.SUCCEEDED),
        ("Complete", condition("Complete", "False"), Completion.RUNNING),
        ("Complete", condition("Suspended"), Completion.RUNNING),
        ("Complete,", condition("Suspended"), Completion.RUNNING),
        ("Complete", {}, Completion.RUNNING),
        ("Complete", {"conditions": 7}, Completion.RUNNING),
        ("Complete", {"conditions": [7, {}]}, Completion.RUNNING),
        ("Complete", None, Completion.RUNNING),
        ("", condition("Complete"), Completion.RUNNING),
    ],
)
def test_mcad_looks_for_parts_of_types_of_conditions(
    asked: str, status: Any, found: Completion
) -> None:
    """In any case; an empty part would be in all of them, and is left out."""
    assert judged(mcad(mcad_item(job(), completionstatus=asked)), status) is found


def test_all_items_that_ask_for_it_must_be_complete() -> None:
    """Those that do not ask may run on, and hold the completion while they have pods."""
    one, other = (mcad_item(job(name), completionstatus="Complete") for name in "ab")
    done = condition("Complete")
    assert judged(mcad(one, other), done, None) is Completion.RUNNING
    assert judged(mcad(one, other), done, done) is Completion.SUCCEEDED
    assert judged(mcad(one, mcad_item(deployment())), done, None) is Completion.SUCCEEDED
    held = judged(mcad(one, mcad_item(deployment())), done, None, pods_left=2)
    assert held is Completion.HOLD


def test_words_are_split_at_commas() -> None:
    assert words(" Complete,,FAILED ,") == ["complete", "failed"]


RAY_JOB = obj("ray.io/v1", "RayJob", "rj", spec={"rayClusterSpec": ray_spec()})
JOB_SET = obj(
    "jobset.x-k8s.io/v1alpha2",
    "JobSet",
    "js",
    spec={"replicatedJobs": [{"name": "a", "template": job()}]},
)


@pytest.mark.parametrize(
    ("made_of", "status", "found"),
    [
        (job(), condition("Complete"), Completion.SUCCEEDED),
        (job(), condition("Failed"), Completion.FAILED),
        (job(), condition("FailureTarget"), Completion.RUNNING),
        (job(), condition("Complete", "False"), Completion.RUNNING),
        (job(), None, Completion.RUNNING),
        (obj("v1", "Pod", "p", spec=pod_spec()), {"phase": "Succeeded"}, Completion.SUCCEEDED),
        (obj("v1", "Pod", "p", spec=pod_spec()), {"phase": "Failed"}, Completion.FAILED),
        (obj("v1", "Pod", "p", spec=pod_spec()), {"phase": ["x"]}, Completion.RUNNING),
        (JOB_SET, condition("Completed"), Completion.SUCCEEDED),
        (JOB_SET, condition("Failed"), Completion.FAILED),
        (RAY_JOB, {"jobStatus": "SUCCEEDED"}, Completion.SUCCEEDED),
        (RAY_JOB, {"jobStatus": "RUNNING"}, Completion.RUNNING),
        (RAY_JOB, {"jobStatus": "FAILED", "jobDeploymentStatus": "Retrying"}, Completion.RUNNING),
        (RAY_JOB, {"jobStatus": "FAILED", "jobDeploymentStatus": "Complete"}, Completion.FAILED),
        (RAY_JOB, {"jobDeploymentStatus": "Failed"}, Completion.FAILED),
        (ray_cluster(), {"state": "ready", **condition("Completed")}, Completion.RUNNING),
        (deployment(), condition("Available"), Completion.RUNNING),
    ],
)
def test_kinds_that_end_say_so_themselves(made_of: Json, status: Any, found: Completion) -> None:
    assert judged(codeflare(made_of), status) is found


def test_items_without_pods_wait_for_nothing() -> None:
    done = condition("Complete")
    assert judged(codeflare(config_map(), job()), None, done) is Completion.SUCCEEDED
    assert judged(codeflare(deployment(), job()), None, done) is Completion.RUNNING
    assert judged(codeflare(deployment(), job()), None, condition("Failed")) is Completion.FAILED
    assert judged(codeflare(config_map()), None) is Completion.RUNNING


@pytest.mark.parametrize("kind", [{"a": 1}, ["a"], None, 7])
def test_a_condition_of_any_type_is_read(kind: object) -> None:
    status = {"conditions": [{"type": kind, "status": "True"}]}
    assert judged(codeflare(job("work")), status, pods_left=1) is Completion.RUNNING
