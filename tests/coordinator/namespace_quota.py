"""A world in which a ResourceQuota refuses pods, and KubeRay tries again later and later.

Every pod that was admitted counts, also a gated one. A RayCluster that was refused a pod is tried
again when it or one of its pods changes, and else after a delay that doubles up to 1,000 s, as
the work queue of controller-runtime has it. Quota that comes free wakes nobody.
"""

from collections import defaultdict
from dataclasses import dataclass

from kube.api.errors import Forbidden
from tests.coordinator.api import Api
from tests.coordinator.builders import TEAM, Json
from tests.coordinator.world import World

CPUS = "requests.cpu"
FIRST_DELAY, LONGEST_DELAY = 0.005, 1000.0


def cpu_quota(cpus: int) -> Json:
    """A ResourceQuota of the namespace that admits so many CPUs, in whole ones."""
    hard = {CPUS: str(cpus)}
    return {
        "kind": "ResourceQuota",
        "metadata": {"name": "compute", "namespace": TEAM},
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": {CPUS: "0"}},
    }


@dataclass
class _Tries:
    """How a RayCluster stood when KubeRay looked at it last, and when it looks again anyway."""

    seen: object = None
    failures: int = 0
    due: float = 0.0


class QuotaWorld(World):
    """A world whose API server holds pods to a ResourceQuota of the one namespace."""

    def __init__(self, cpus: int, *start: Json) -> None:
        self._tries: defaultdict[str, _Tries] = defaultdict(_Tries)
        super().__init__(cpu_quota(cpus), *start)

    def controllers(self) -> None:
        """Do everybody's work, also that of the controller of quotas."""
        super().controllers()
        for quota in list(self.api.all("resourcequotas")):
            self.api.change(quota, self._count)

    def _count(self, quota: Json) -> None:
        quota["status"]["used"] = {CPUS: str(cpus_used(self.api))}

    def _reconcile_cluster(self, cluster: Json, owned: list[Json]) -> None:
        tries = self._tries[cluster["metadata"]["uid"]]
        seen = _seen(cluster, owned)
        if tries.failures and seen == tries.seen and self.api.now < tries.due:
            return
        tries.seen = seen
        try:
            super()._reconcile_cluster(cluster, owned)
        except Forbidden as error:
            tries.due = self.api.now + min(LONGEST_DELAY, FIRST_DELAY * 2**tries.failures)
            tries.failures += 1
            self._say(cluster, {"conditions": [_condition(error)]})
        else:
            tries.failures = 0
            self._say(cluster, {})

    def _make_pod(self, cluster: Json, pod_set: Json, replica: str) -> None:
        asked, used = _cpus(pod_set["template"]), cpus_used(self.api)
        for quota in self.api.all("resourcequotas"):
            hard = int(quota["spec"]["hard"][CPUS])
            if used + asked > hard:
                raise Forbidden(403, "Forbidden", _refusal(quota, asked, used, hard))
        super()._make_pod(cluster, pod_set, replica)

    def _next_moment(self, end: float) -> float:
        uids = {each["metadata"]["uid"] for each in self.api.all("rayclusters")}
        tries = [each for uid, each in self._tries.items() if uid in uids and each.failures]
        due = [each.due for each in tries if each.due > self.api.now]
        return min([super()._next_moment(end), *due])


def cpus_used(api: Api) -> int:
    """How many CPUs the pods of all gangs take of the quota."""
    return sum(_cpus(pod) for pod in api.all("pods"))


def _cpus(pod: Json) -> int:
    return sum(int(each["resources"]["requests"]["cpu"]) for each in pod["spec"]["containers"])


def _seen(cluster: Json, owned: list[Json]) -> object:
    meta = cluster["metadata"]
    pods = {pod["metadata"]["uid"]: pod["metadata"]["resourceVersion"] for pod in owned}
    return meta["generation"], meta["labels"], meta["annotations"], pods


def _refusal(quota: Json, asked: int, used: int, hard: int) -> str:
    name = quota["metadata"]["name"]
    sums = f"requested: {CPUS}={asked}, used: {CPUS}={used}, limited: {CPUS}={hard}"
    return f'pods "x" is forbidden: exceeded quota: {name}, {sums}'


def _condition(error: Forbidden) -> Json:
    reason = "FailedCreateWorkerPod"
    message = f"{reason}\n{error.message}"
    return {"type": "ReplicaFailure", "status": "True", "reason": reason, "message": message}
