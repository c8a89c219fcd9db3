"""What is kept of a RayJob or RayService."""

import msgspec

from kube.objects import names
from kube.objects.base import ObjectMeta
from kube.objects.ray import RayJob, RayService
from kube.ray.ray_owner import LONGEST_NAME, essential_job, essential_service

META = ObjectMeta(
    name="job",
    uid="uid",
    creation_timestamp="2026-01-01T00:00:00Z",
    labels={"team": "a"},
    annotations={"note": "x", names.SUSPENDED_FOR: "n" * 1000},
)


def test_of_the_annotations_of_a_rayjob_one_is_kept_and_cut() -> None:
    kept = essential_job(RayJob(metadata=META)).metadata
    assert (kept.name, kept.uid, kept.creation_timestamp) == ("job", "uid", "2026-01-01T00:00:00Z")
    assert kept.labels == {}
    assert kept.annotations == {names.SUSPENDED_FOR: "n" * LONGEST_NAME}


def test_of_a_rayservice_no_label_and_no_annotation_is_kept() -> None:
    kept = essential_service(RayService(metadata=ObjectMeta(labels={"a": "b"}))).metadata
    assert (kept.labels, kept.annotations) == ({}, {})


def test_null_in_a_rayjob_reads_as_absent() -> None:
    spec = {"clusterSelector": None, "backoffLimit": None, "submissionMode": None, "suspend": None}
    job = msgspec.convert({"metadata": {"name": "job"}, "spec": spec}, RayJob)
    assert job.spec.cluster_selector == {}
    assert job.spec.backoff_limit is None
