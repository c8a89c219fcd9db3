"""Says what each change of a RayCluster does: now, for later pods only, or never (KubeRay 1.6.2).

KubeRay keeps the number of pods, deletes what it is told to, and makes pods of the templates as
they then are. It never changes a pod that exists, and looks at no group that is gone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from cli.managing.cluster import autoscales
from cli.managing.values import part
from kube.objects import names

Json = Mapping[str, Any]

RECREATE: Final = "Recreate"


class Effect(Enum):
    """When a change holds."""

    NOW = auto()
    LATER = auto()
    NEVER = auto()


@dataclass(frozen=True, slots=True)
class Change:
    """One field that becomes another, and what that does."""

    field: str
    effect: Effect
    said: str

    def __str__(self) -> str:
        return f"{self.field}: {self.said}"


@dataclass(frozen=True, slots=True)
class Edit:
    """All changes of one RayCluster; `recreates` says that all its pods are deleted for them."""

    changes: tuple[Change, ...]
    recreates: bool = False

    def of(self, effect: Effect) -> tuple[Change, ...]:
        """Return the changes that hold at one time."""
        return tuple(each for each in self.changes if each.effect is effect)


_COPY: Final = "it takes a new RayCluster: muster create NEW --like {name}"
_MANAGED: Final = "which operator manages a RayCluster never changes; " + _COPY
_STORED: Final = "fault tolerance cannot be switched or moved while it lives; " + _COPY
_AUTH: Final = "head and workers would no longer agree who may talk to them; " + _COPY
_HEAD_LATER: Final = "for a head pod that is made from now on; the one that runs keeps what it has"
_LATER: Final = "for pods that are made from now on; those that run keep what they have"
_SERVICE: Final = "for a Service or Ingress that is made from now on"

_OF_SPEC: Final[Mapping[str, tuple[Effect, str]]] = {
    "managedBy": (Effect.NEVER, _MANAGED),
    "gcsFaultToleranceOptions": (Effect.NEVER, _STORED),
    "authOptions": (Effect.NEVER, _AUTH),
    "upgradeStrategy": (Effect.NOW, "from now on"),
    "suspend": (Effect.NOW, "now"),
    "headServiceAnnotations": (Effect.LATER, _SERVICE),
    "enableInTreeAutoscaling": (
        Effect.LATER,
        "Ray's autoscaler runs in the head pod: for one that is made from now on",
    ),
}
_OF_AUTOSCALER: Final = ("idleTimeoutSeconds", "upscalingMode")
"""Ray's autoscaler reads these anew; all else are fields of its container."""

_OF_HEAD: Final[Mapping[str, tuple[Effect, str]]] = {
    "headService": (Effect.LATER, _SERVICE),
    "serviceType": (Effect.LATER, _SERVICE),
    "enableIngress": (Effect.LATER, _SERVICE),
}
_OF_GROUP: Final[Mapping[str, tuple[Effect, str]]] = {
    "minReplicas": (Effect.NOW, "now"),
    "maxReplicas": (Effect.NOW, "now"),
    "idleTimeoutSeconds": (Effect.NOW, "now, by Ray's autoscaler"),
    "scaleStrategy": (Effect.NOW, "KubeRay deletes these pods now"),
    "suspend": (
        Effect.NEVER,
        "KubeRay keeps it for the deletion rules of RayJobs; allowed: muster scale, or suspend",
    ),
    "numOfHosts": (Effect.NEVER, "replicas that exist would be of another size; " + _COPY),
}
_FAULT_TOLERANCE: Final = (
    names.HEAD_FAULT_TOLERANCE,
    "ray.io/ft-enabled",
    "ray.io/external-storage-namespace",
)


def judge_edit(old: Json, new: Json) -> Edit:
    """Return what becomes different between two states of one RayCluster."""
    before, after = old["spec"], new["spec"]
    found = [*_of_metadata(old, new), *_of_spec(before, after)]
    asleep, recreates = _is_asleep(old), _recreates(before, after)
    name = old["metadata"]["name"]
    return Edit(
        tuple(_judged(each, name, made_anew=asleep or recreates) for each in found),
        recreates=recreates and not asleep,
    )


def _judged(change: Change, name: str, *, made_anew: bool) -> Change:
    """Where no pod stays, what holds for later pods holds for all; so does what is of pods."""
    effect, said = change.effect, change.said.format(name=name)
    if made_anew and (effect is Effect.LATER or change.field.startswith(_OF_PODS)):
        effect, said = Effect.NOW, "for all pods, which are made anew"
    return Change(change.field, effect, said)


_REMOVED: Final = "removed group "
_OF_PODS: Final = (_REMOVED,)


def _is_asleep(cluster: Json) -> bool:
    """Say whether a RayCluster has no pods, and gets none before it is resumed."""
    return bool(cluster["spec"].get("suspend")) and part(cluster, "status").get("state") == (
        "suspended"
    )


# ---- metadata


def _of_metadata(old: Json, new: Json) -> Iterator[Change]:
    for kind in ("labels", "annotations"):
        before, after = part(old, "metadata", kind), part(new, "metadata", kind)
        for key in _different(before, after):
            never = key in _FAULT_TOLERANCE
            effect = Effect.NEVER if never else Effect.NOW
            yield Change(f"{kind}[{key}]", effect, _STORED if never else _words(before, after, key))


def _words(before: Json, after: Json, key: str) -> str:
    return f"{_shown(before.get(key))} -> {_shown(after.get(key))}"


def _shown(value: object) -> str:
    return "none" if value is None else f"{value!s:.60}"


# ---- spec


def _of_spec(before: Json, after: Json) -> Iterator[Change]:
    for field in _different(before, after):
        if field == "headGroupSpec":
            yield from _of_head(part(before, field), part(after, field))
        elif field == "autoscalerOptions":
            yield from _of_autoscaler(part(before, field), part(after, field))
        elif field == "workerGroupSpecs":
            yield from _of_groups(before, after)
        else:
            effect, said = _OF_SPEC.get(field, (Effect.LATER, _LATER))
            yield Change(field, effect, _with_values(said, before, after, field))


def _with_values(said: str, before: Json, after: Json, field: str) -> str:
    """Say from what to what, where both are short."""
    values = (before.get(field), after.get(field))
    if said.startswith("now") and all(isinstance(each, str | int | None) for each in values):
        return f"{_words(before, after, field)}, {said}"
    return said


def _of_head(before: Json, after: Json) -> Iterator[Change]:
    for field in _different(before, after):
        effect, said = _OF_HEAD.get(field, (Effect.LATER, _HEAD_LATER))
        yield Change(f"headGroupSpec.{field}", effect, said)


def _of_autoscaler(before: Json, after: Json) -> Iterator[Change]:
    for field in _different(before, after):
        live = field in _OF_AUTOSCALER
        said = _with_values("now, by Ray's autoscaler", before, after, field)
        yield Change(
            f"autoscalerOptions.{field}",
            Effect.NOW if live else Effect.LATER,
            said if live else _HEAD_LATER,
        )


def _of_groups(before: Json, after: Json) -> Iterator[Change]:
    old, new = _by_name(before), _by_name(after)
    for name in old.keys() - new.keys():
        yield Change(
            f"{_REMOVED}{name}",
            Effect.NEVER,
            f"KubeRay would leave its pods running; allowed: muster scale {{name}} {name}=0; "
            + _COPY,
        )
    for name in [each for each in new if each not in old]:
        yield Change(f"new group {name}", Effect.NOW, "its pods are made now")
    for name in [each for each in new if each in old]:
        autoscaler = autoscales(dict(after))
        yield from _of_group(name, old[name], new[name], autoscaler=autoscaler)


def _by_name(spec: Json) -> dict[str, Json]:
    return {each["groupName"]: each for each in spec.get("workerGroupSpecs") or ()}


def _of_group(name: str, before: Json, after: Json, *, autoscaler: bool) -> Iterator[Change]:
    for field in _different(before, after):
        if field == "replicas":
            effect, said = (Effect.NEVER, _AUTOSCALED) if autoscaler else (Effect.NOW, "now")
        else:
            effect, said = _OF_GROUP.get(field, (Effect.LATER, _LATER))
        yield Change(f"{name}.{field}", effect, _with_values(said, before, after, field))


_AUTOSCALED: Final = "Ray's autoscaler decides it; allowed: min and max, which muster scale sets"


# ---- what differs


def _different(before: Json, after: Json) -> list[str]:
    """Name the fields that differ, in the order of both; null is as good as absent."""
    fields = dict.fromkeys((*before, *after))
    return [each for each in fields if _plain(before.get(each)) != _plain(after.get(each))]


def _plain(found: Any) -> Any:
    """Return it without fields that say nothing."""
    if isinstance(found, Mapping):
        plain = {key: _plain(value) for key, value in found.items()}
        return {key: value for key, value in plain.items() if value is not None} or None
    if isinstance(found, list):
        return [_plain(each) for each in found] or None
    return found


# ---- Recreate


def _recreates(before: Json, after: Json) -> bool:
    """Say whether KubeRay deletes all pods at once, to make them anew."""
    if part(after, "upgradeStrategy").get("type") != RECREATE:
        return False
    began = part(before, "upgradeStrategy").get("type") != RECREATE
    return began or _hashed(before) != _hashed(after)


def _hashed(spec: Json) -> Any:
    """Return what KubeRay compares: all but what others change while it runs."""
    head = {**part(spec, "headGroupSpec")}
    left = {**spec, "upgradeStrategy": None, "headGroupSpec": _bare(head)}
    groups = [
        _bare({**each, "replicas": None, "minReplicas": None, "maxReplicas": None})
        | {"scaleStrategy": None}
        for each in spec.get("workerGroupSpecs") or ()
    ]
    return _plain({**left, "workerGroupSpecs": groups})


def _bare(group: Json) -> dict[str, Any]:
    """Return a group without the tolerations and scheduling gates of its template."""
    pod = {**part(group, "template", "spec"), "tolerations": None, "schedulingGates": None}
    return {**group, "template": {**part(group, "template"), "spec": pod}}
