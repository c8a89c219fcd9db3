"""One leader of the wrapper on an API server in memory, in simulated time.

The pure state machine and the real way of carrying actions out; only clock, tasks and sockets are
left away. A leader that is killed is followed by one that knows nothing but what it lists.
"""

import copy
import json
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from kube.api.client import Client
from kube.api.resources import APP_WRAPPERS
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from runtime.controller.moment import Moment
from tests.wrapper.fake_api import ITEMS, NAMESPACE, FakeApi, Json, Killed
from wrapper.messages import (
    Ended,
    Event,
    GangGone,
    GangSeen,
    PodGone,
    PodSeen,
    TellUser,
    TermStarted,
    TimePassed,
    WrapperGone,
    WrapperSeen,
)
from wrapper.metrics import Metrics
from wrapper.reading import CountedPod, WrappedGang, pod_of, signal_of, wrapper_of
from wrapper.shell.executor import Executor
from wrapper.state_machine import WrapperState

BEGAN = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
CREATOR = json.dumps({"username": "alice", "groups": ["researchers"]})
API_VERSION = "workload.codeflare.dev/v1beta2"

MOST_AT_ONCE = 10_000
"""Requests in no time."""


class _Leads:
    def valid(self) -> bool:
        return True


class World:
    """What happens; `settle` lets time pass until nothing is left to do."""

    def __init__(self) -> None:
        self.api = FakeApi()
        self.now = 0.0
        self.deaths = 0
        self.told: list[TellUser] = []
        self.metrics = Metrics()
        self.places_again = False
        self.nodes_answer = True
        self.makes_pods = True
        self.lead()

    def lead(self) -> None:
        """A new leader lists all there is."""
        self.state = WrapperState()
        self.executor = Executor(
            cast(Client, self.api),
            _Leads(),
            lambda _: None,
            apis={APP_WRAPPERS.group: APP_WRAPPERS},
            identity="test",
            concurrency=1,
            metrics=self.metrics,
        )
        self.api.news = [("SEEN", key, obj) for key, obj in self.api.objects.items()]
        self._handle([*self._news(), TermStarted()])

    # --- time -----------------------------------------------------------------------------------

    def settle(self, seconds: float = 5.0) -> None:
        """Let so much time pass, in steps of the moments that the state machine asks for."""
        until = self.now + seconds
        for _ in range(20_000):
            events = self._news()
            if events:
                self._handle(events)
                continue
            self._controllers()
            if self.api.news:
                continue
            wake = self.state.next_wake
            if wake is None or wake > until:
                break
            self.now = max(self.now, wake)
            self._handle([TimePassed()])
        else:
            raise AssertionError("it never comes to rest")
        self.now = until
        self._handle([TimePassed()])

    @property
    def moment(self) -> Moment:
        """What time it is."""
        wall = BEGAN + self.now
        stamp = datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Moment(self.now, stamp, wall)

    def _handle(self, events: list[Event]) -> None:
        actions, began = self.state.handle(events, self.moment), self.api.requests
        while actions:
            assert self.api.requests < began + MOST_AT_ONCE, "it writes without end"
            ended: list[Event] = []
            for action in actions:
                if isinstance(action, TellUser):
                    self.told.append(action)
                    continue
                try:
                    result = _ran(self.executor._do(action))
                except Killed:
                    self.deaths += 1
                    self.api.die_at = None
                    self.lead()
                    return
                ended.append(Ended(action.key, action.ticket, result))
            actions = self.state.handle(ended, self.moment)

    def _news(self) -> list[Event]:
        news, self.api.news = self.api.news, []
        return [event for told in news if (event := _event(*told)) is not None]

    # --- the controllers of others --------------------------------------------------------------

    def _controllers(self) -> None:
        """The garbage collector, those that make pods of Jobs, and the coordinator."""
        if self.places_again:
            self._place_again()
        for (plural, name), obj in list(self.api.objects.items()):
            meta = obj["metadata"]
            if plural in ITEMS and meta.get("deletionTimestamp"):
                for pod in self.pods_of(name) if self.nodes_answer else ():
                    self.api.remove("pods", pod["metadata"]["name"])
                if not self.pods_of(name):
                    self.api.remove(plural, name)
            elif plural == "jobs" and meta.get("labels") and self.makes_pods:
                self._make_missing_pod(obj)

    def pods_of(self, job: str) -> list[Json]:
        """The pods that a Job made."""
        return [p for p in self.api.named("pods") if p["metadata"]["name"] == f"{job}-0"]

    def _make_missing_pod(self, job: Json) -> None:
        if self.pods_of(job["metadata"]["name"]):
            return
        meta = job["spec"]["template"]["metadata"]
        name = f"{job['metadata']['name']}-0"
        self.api.put("pods", {"metadata": {"name": name, **meta}, "status": {"phase": "Pending"}})

    # --- the coordinator ------------------------------------------------------------------------

    def gang(self, held: str, *, placed: bool, name: str = "aw", **status: Any) -> None:
        """What the coordinator writes into the Gang."""
        wrapper = self.api.objects["appwrappers", name]
        meta, counted = wrapper["metadata"], wrapper.get("status", {}).get("transitionCount", 0)
        said = {"phase": held, "generation": meta["generation"] + counted}
        gang = f"{names.APP_WRAPPER_GANG}{name}"
        before = self.api.objects.get(("gangs", gang))
        known = {"uid": before["metadata"]["uid"]} if before else {}
        placement: Json = {"placement": {"podSets": []}} if placed else {}
        self.api.put(
            "gangs",
            {
                "metadata": {"name": gang, **known},
                "spec": {"rayClusterUid": meta["uid"]},
                "status": {"held": said, **placement, **status},
            },
        )

    def place(self, name: str = "aw") -> None:
        """The gang has its place."""
        self.gang("Waiting", placed=True, name=name)

    def place_each_time(self) -> None:
        """The gang has its place, and will have it again whenever it is queued again."""
        self.place()
        self.places_again = True

    def _place_again(self) -> None:
        gang = self.api.objects.get(("gangs", f"{names.APP_WRAPPER_GANG}aw"))
        counted = self.status.get("transitionCount", 0)
        meta = self.api.objects["appwrappers", "aw"]["metadata"]
        known = gang["status"]["held"]["generation"] if gang else 0
        if self.phase == "Suspended" and known != meta["generation"] + counted:
            self.place()

    def stop(self, reason: str = "Preempted", message: str = "for another") -> None:
        """The gang gives its place back."""
        self.gang("Suspending", placed=False, reason=reason, message=message)

    def pods_become(self, phase: str, *exits: int) -> None:
        """All pods are in a phase; their containers ended so."""
        ended = [{"state": {"terminated": {"exitCode": code}}} for code in exits]
        for pod in self.api.named("pods"):
            status = {"phase": phase, "containerStatuses": ended}
            self.api.change("pods", pod["metadata"]["name"], status=status)

    def job_says(self, name: str, condition: str) -> None:
        """A Job ended."""
        status = {"conditions": [{"type": condition, "status": "True"}]}
        self.api.change("jobs", name, status=status)

    # --- what is there --------------------------------------------------------------------------

    @property
    def status(self) -> Json:
        """The status of the AppWrapper."""
        return cast(Json, self.api.objects["appwrappers", "aw"].get("status", {}))

    @property
    def phase(self) -> str:
        """Its phase."""
        return str(self.status.get("phase", ""))

    @property
    def items(self) -> list[str]:
        """The wrapped objects that exist."""
        return [name for plural, name in self.api.objects if plural in ITEMS]


def _ran(work: Coroutine[Any, Any, Any]) -> Any:
    """Run what waits for nothing: this API server answers at once."""
    try:
        work.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("it waits")


def _event(kind: str, key: tuple[str, str], obj: Json) -> Event | None:
    body = json.dumps(obj).encode()
    seen = kind == "SEEN"
    match key[0]:
        case "appwrappers":
            wrapper = wrapper_of(msgspec.json.decode(body, type=AppWrapper), API_VERSION)
            if wrapper is None:
                return None
            return WrapperSeen(wrapper) if seen else WrapperGone(wrapper.key, wrapper.metadata.uid)
        case "gangs":
            signal = signal_of(msgspec.json.decode(body, type=WrappedGang))
            assert signal is not None
            return GangSeen(signal) if seen else GangGone(signal)
        case "pods":
            pod = pod_of(msgspec.json.decode(body, type=CountedPod))
            assert pod is not None
            return PodSeen(pod) if seen else PodGone(pod)
        case _:
            return None


# --- AppWrappers ----------------------------------------------------------------------------------


def config_map(name: str = "settings") -> Json:
    """An item without pods."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def job(name: str = "work", **spec: Any) -> Json:
    """An item with one pod."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def codeflare(*items: Json, name: str = "aw", **more: Any) -> Json:
    """An AppWrapper of CodeFlare's generation."""
    spec = {"components": [{"template": copy.deepcopy(item)} for item in items], **more}
    return _wrapper(name, spec)


def mcad(*items: Json, name: str = "aw", completion: str = "", **more: Any) -> Json:
    """An AppWrapper of MCAD's generation."""
    ends = {"completionstatus": completion} if completion else {}
    entries = [
        {"generictemplate": copy.deepcopy(i), **(ends if i["kind"] == "Job" else {})} for i in items
    ]
    return _wrapper(name, {"resources": {"GenericItems": entries}, **more})


def _wrapper(name: str, spec: Json) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": "AppWrapper",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {names.CREATED_BY: CREATOR},
        },
        "spec": spec,
    }


def with_wrapper(wrapper: Json) -> World:
    """A world in which an AppWrapper was just created."""
    world = World()
    world.api.put("appwrappers", wrapper)
    world.settle(1)
    return world
