"""Annotations of other schedulers are told, of pods alone and whatever else is in a template."""

import json
from typing import Any

import msgspec
import pytest

from kube.objects.ray import RayCluster
from kube.ray.gpu_sharing import READ_BY, sharing_annotations, sharing_in_words
from kube.ray.ray_cluster import essential


def cluster(head: Any = None, worker: Any = None, **spec: Any) -> RayCluster:
    """A RayCluster whose pods have these metadata."""
    groups = [{"groupName": "w", "template": {"metadata": worker}}]
    raw = {"headGroupSpec": {"template": {"metadata": head}}, "workerGroupSpecs": groups, **spec}
    return msgspec.json.decode(json.dumps({"spec": raw}), type=RayCluster)


@pytest.mark.parametrize("key", READ_BY)
def test_each_is_found_on_head_and_workers(key: str) -> None:
    said = {"annotations": {key: "0.5", "other": "x"}}
    assert sharing_annotations(cluster(head=said).spec) == (key,)
    assert sharing_annotations(cluster(worker=said).spec) == (key,)


@pytest.mark.parametrize(
    "meta",
    [
        None,
        {},
        {"labels": {"gpu-fraction": "0.5"}},
        {"annotations": {"other": '"gpu-fraction"'}},
        {"annotations": {"gpu-fraction": 1}},
        {"annotations": None, "labels": {"gpu-memory": "x"}},
    ],
)
def test_nothing_else_is_taken_for_one(meta: Any) -> None:
    assert sharing_annotations(cluster(meta, meta).spec) == ()


@pytest.mark.parametrize("suspend", [False, True])
def test_they_are_kept_when_templates_are_dropped(suspend: bool) -> None:
    said = {"annotations": {"gpu-fraction": "0.5"}}
    assert essential(cluster(said, suspend=suspend)).spec.gpu_sharing == ("gpu-fraction",)
    assert essential(cluster({}, gpuSharing=["muster"])).spec.gpu_sharing == ()


def test_words_name_key_and_system_and_what_to_do() -> None:
    said = sharing_in_words(("gpu-fraction", "nvidia.com/vgpu-mode"))
    assert "gpu-fraction (KAI and run:ai), nvidia.com/vgpu-mode (HAMi)" in said
    assert "request them, such as nvidia.com/gpu" in said
    assert sharing_in_words(()) == ""
