"""Which seats does a placement keep, as its pods come and go?"""

import msgspec

from kube import names, objects
from kube.observed import ObservedPod, observe
from kube.slots import kind_of, without_halves
from scheduling.model import Assignment, Placement
from tests.coordinator.builders import pod_of, ray_cluster, template

CLUSTER = ray_cluster("a")
CLUSTER["metadata"]["uid"] = "a"
HOSTS = {"workers": 2}


def worker(name: str, node: str = "", cpu: int = 1) -> ObservedPod:
    """A pod of the replica `r`, bound to a node or gated."""
    spec = template(cpu=cpu, nodeName=node)
    raw = pod_of(CLUSTER, "workers", name, spec, "r", [] if node else [names.GATE])
    raw["metadata"]["uid"] = name
    return observe(msgspec.convert(raw, objects.Pod))


def seats(pod: ObservedPod, **nodes: int) -> Placement:
    kind = kind_of(pod)
    assert kind is not None
    return Placement((Assignment(*kind, requests=pod.used, nodes=tuple(nodes.items())),))


def test_the_seats_of_a_replica_that_lost_one_are_given_up() -> None:
    pods = [worker("one"), worker("two")]
    assert without_halves(seats(pods[0], n1=1), pods, HOSTS) == Placement()
    assert without_halves(seats(pods[0], n1=2), pods, HOSTS) == seats(pods[0], n1=2)


def test_a_pod_that_runs_where_nothing_was_promised_makes_the_replica_whole() -> None:
    """Or the seat for the other one would be decided and given up for ever."""
    pods = [worker("one", "n2"), worker("two")]
    assert without_halves(seats(pods[1], n1=1), pods, HOSTS) == seats(pods[1], n1=1)


def test_a_pod_that_was_resized_on_its_seat_is_counted_once() -> None:
    pods = [worker("one", "n1", cpu=2), worker("two")]
    assert without_halves(seats(pods[1], n1=2), pods, HOSTS) == seats(pods[1], n1=2)
