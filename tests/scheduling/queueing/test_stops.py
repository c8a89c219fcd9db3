"""Which queues are stopped, by themselves or by one above."""

from scheduling.model.queue import Queue, Stop
from scheduling.queueing.stops import StoppedBy, stops


def test_parents_in_a_circle_stop_each_other() -> None:
    circle = {"a": Queue("a", "b", stop=Stop.HOLD), "b": Queue("b", "a")}
    assert stops(circle) == {each: StoppedBy("a", Stop.HOLD) for each in circle}
