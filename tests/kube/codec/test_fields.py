"""Single fields are read, and a bad one is named with its value."""

import pytest

from kube.codec.fields import AFTER_ALL, InvalidObject, created_at
from kube.codec.pod import pod_shape
from kube.objects import base as base_objects
from tests.kube.codec.pods import container, pod


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(InvalidObject) as caught:
        pod_shape(pod({"containers": [container(cpu="x" * 10_000)]}))
    assert len(str(caught.value)) < 500


def test_creation_time() -> None:
    assert created_at(base_objects.ObjectMeta()) == 0.0
    found = base_objects.ObjectMeta(creation_timestamp="2026-01-01T00:00:01Z")
    assert created_at(found) == 1767225601.0
    assert created_at(base_objects.ObjectMeta(creation_timestamp="yesterday")) == AFTER_ALL
