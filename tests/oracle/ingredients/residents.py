"""Pods that are there but not simply running: terminating, finished, nominated, resized."""

from collections.abc import Sequence
from dataclasses import replace

from tests.oracle.draw import Draw
from tests.oracle.ingredient import Ingredient
from tests.oracle.model import HIGH, LOW, Json, Scene


class Terminating(Ingredient):
    """A pod holds its room until it is gone; a finalizer keeps it here."""

    name = "terminating pods"
    share = 0.4

    def add_to_resident(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.4):
            pod["metadata"]["finalizers"] = [f"oracle.example/{draw.slot}"]
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    def without(self, scene: Scene) -> Scene:
        staying = [each for each in scene.bound if "deletionTimestamp" not in each[0]["metadata"]]
        return replace(scene, bound=staying)


class Finished(Ingredient):
    """A pod that has succeeded or failed holds nothing."""

    name = "finished pods"
    permits = True
    share = 0.4

    def add_to_resident(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.4):
            pod["status"] = {"phase": draw.random.choice(("Succeeded", "Failed"))}

    def without(self, scene: Scene) -> Scene:
        return replace(scene, bound=[*scene.bound, *scene.finished])


class Nominated(Ingredient):
    """A pod that is promised a node counts there for pods that are no more important.

    It selects a node that does not exist, so that it stays promised.
    """

    name = "nominated pods"
    share = 0.5

    def add_to_resident(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if pod.get("status") or "deletionTimestamp" in pod["metadata"] or draw.happens(0.5):
            return
        spec = pod["spec"]
        waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        pod["status"] = {"nominatedNodeName": spec.pop("nodeName"), "conditions": [waits]}
        spec["nodeSelector"] = {"world": f"not-{draw.slot}"}
        spec["priorityClassName"] = draw.random.choice((HIGH, HIGH, LOW))

    def without(self, scene: Scene) -> Scene:
        return replace(scene, nominated=[])


class Resized(Ingredient):
    """While a resize is under way the most counts of what is asked, was given, and runs."""

    name = "resized pods"
    share = 0.3

    def add_to_resident(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if "status" in pod or "resources" in pod["spec"] or draw.happens(0.5):
            return
        given, running = ({"cpu": str(draw.random.randint(0, 5))} for _ in range(2))
        main = {"name": "main", "image": "none", "imageID": "", "ready": True, "restartCount": 0}
        amounts = {"allocatedResources": given, "resources": {"requests": running}}
        pod["status"] = {"phase": "Running", "containerStatuses": [{**main, **amounts}]}

    def without(self, scene: Scene) -> Scene:
        return replace(scene, bound=[(_as_asked(pod), node) for pod, node in scene.bound])


def _as_asked(pod: Json) -> Json:
    return {**pod, "status": {**pod.get("status", {}), "containerStatuses": []}}
