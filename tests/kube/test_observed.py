"""What is kept of a pod, and for how long?"""

import msgspec
import orjson
import pytest

from kube.objects import Pod
from kube.observed import observe
from scheduling.company import Kind

BORDER = {f"k{at:02}": "v" * 61 for at in range(64)}  # 64 labels of 64 characters each


def kind(labels: dict[str, str]) -> Kind:
    raw = {"metadata": {"namespace": "ns", "labels": labels}, "spec": {}, "status": {}}
    return observe(msgspec.json.decode(orjson.dumps(raw), type=Pod)).kind


@pytest.mark.parametrize("labels", [{}, {"app": "web"}, BORDER])
def test_equal_labels_are_kept_once(labels: dict[str, str]) -> None:
    assert kind(labels) == ("ns", tuple(sorted(labels.items())))
    assert kind(labels) is kind(dict(labels))


@pytest.mark.parametrize(
    "labels",
    [
        {f"k{at}": "" for at in range(65)},
        {**BORDER, "k00": "v" * 62},
        {"k" * 200_000: "v"},
    ],
)
def test_labels_that_are_large_go_with_their_pod(labels: dict[str, str]) -> None:
    """What is interned outlives the pod: thousands of such sets would fill the memory."""
    assert kind(labels) == ("ns", tuple(sorted(labels.items())))
    assert kind(labels) is not kind(dict(labels))
