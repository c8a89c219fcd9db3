"""Checks the fault tolerance that a labelled Ray object asks for, and writes its options. Pure.

    new, old ──judge──▶ Untouched | Written | Refused

A RayCluster gets `gcsFaultToleranceOptions` when it is created. A change keeps them, for KubeRay
replaces the spec of a RayService's RayCluster whole. A RayJob and a RayService are only checked:
KubeRay copies their label onto the RayCluster that it makes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from kube.objects import names
from kube.objects.base import Labels, ObjectMeta, OrNull, Part, Slim

Json: TypeAlias = dict[str, Any]

FIELD: Final = "gcsFaultToleranceOptions"
SECRET_PREFIX: Final = "muster-redis-user-"  # noqa: S105 - a name
"""How the Secrets of users begin. A policy keeps all others from creating one of such a name."""
USERNAME, PASSWORD = "username", "password"
"""The keys in such a Secret."""
OLDEST_RAY: Final = (2, 41)
"""The first Ray that knows a user of Redis (`ray start --redis-username`)."""

_WHERE: Final = f"metadata.labels[{names.HEAD_FAULT_TOLERANCE}]"
_ANNOTATIONS: Final = ("ray.io/ft-enabled", "ray.io/external-storage-namespace")
_PARAMETERS: Final = ("redis-password", "redis-username")
_VARIABLES: Final = (
    "REDIS_PASSWORD",
    "REDIS_USERNAME",
    "RAY_REDIS_ADDRESS",
    "RAY_external_storage_namespace",
)
_OWN_OPTIONS: Final = ("externalStorageNamespace", "backend", "storage")
_CLUSTER_OF: Final = {"RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}
_SHOWN: Final = 80


class _Variable(Slim, frozen=True):
    name: str = ""


class _Container(Part, frozen=True):
    env: OrNull[tuple[_Variable, ...]] = ()


class _PodSpec(Part, frozen=True):
    containers: OrNull[tuple[_Container, ...]] = ()


class _Template(Slim, frozen=True):
    spec: _PodSpec = _PodSpec()


class _HeadGroup(Part, frozen=True):
    ray_start_params: OrNull[Labels] = msgspec.field(default_factory=dict)
    template: _Template = _Template()


class ClusterSpec(Slim, frozen=True):
    """What of a RayCluster's spec counts here."""

    ray_version: str | None = None
    head_group_spec: _HeadGroup = _HeadGroup()
    gcs_fault_tolerance_options: Json | None = None


class _Spec(ClusterSpec, frozen=True):
    """The spec of any of the three kinds."""

    submission_mode: str | None = None
    ray_cluster_spec: ClusterSpec | None = None
    ray_cluster_config: ClusterSpec | None = None


class RayObject(Slim, frozen=True):
    """A RayCluster, RayJob or RayService, as it is sent."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()

    @property
    def label(self) -> str | None:
        """The value of the label; None without it."""
        return self.metadata.labels.get(names.HEAD_FAULT_TOLERANCE)


@dataclass(frozen=True, slots=True)
class Untouched:
    """The object stays as it is."""


@dataclass(frozen=True, slots=True)
class Written:
    """The RayCluster gets these options, whatever it has."""

    options: Json


@dataclass(frozen=True, slots=True)
class Refused:
    """The object is not allowed: fields, values and what is allowed."""

    message: str


Judgement: TypeAlias = Untouched | Written | Refused
UNTOUCHED: Final = Untouched()

_DECODER: Final = msgspec.json.Decoder(RayObject)


def read_object(sent: bytes | msgspec.Raw) -> RayObject:
    """Read an object; raises msgspec.ValidationError where it is none of the three."""
    return _DECODER.decode(sent)


def options_for(address: str, secret: str) -> Json:
    """Return the options of a RayCluster whose user is in this Secret."""

    def from_secret(key: str) -> Json:
        return {"valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}

    return {
        "redisAddress": address,
        "redisUsername": from_secret(USERNAME),
        "redisPassword": from_secret(PASSWORD),
    }


def secret_of(options: Json | None, address: str) -> str | None:
    """Name the Secret of options that were written here; None where they are others'."""
    try:
        name = (options or {})["redisPassword"]["valueFrom"]["secretKeyRef"]["name"]
    except (KeyError, TypeError):
        return None
    ours = isinstance(name, str) and name.startswith(SECRET_PREFIX)
    return name if ours and options == options_for(address, name) else None


def judge(kind: str, new: RayObject, old: RayObject | None, address: str, token: str) -> Judgement:
    """Judge an object that is created (`old` is None) or changed.

    `token` goes into the name of the Secret of one that is created. Neither its uid nor its
    generated name is known yet, and a copy must not share the Secret of what it was copied from.
    """
    if old is not None and new.label != old.label:
        return _label_changed(new, old)
    if new.label is None:
        return UNTOUCHED
    if faults := [*_faults(kind, new, address)]:
        return Refused("; ".join(faults))
    if kind != "RayCluster":
        return UNTOUCHED
    if old is None:
        return Written(options_for(address, SECRET_PREFIX + token))
    before, after = (each.spec.gcs_fault_tolerance_options for each in (old, new))
    return UNTOUCHED if before is None or before == after else Written(before)


def _label_changed(new: RayObject, old: RayObject) -> Refused:
    was = "no such label" if old.label is None else f'"{old.label}"'
    now = "it is taken off" if new.label is None else f'"{new.label[:_SHOWN]}" is not valid'
    return Refused(
        f"{_WHERE}: {now}; allowed: {was}, as at its creation: a head with state in Redis cannot "
        "be made one without, nor the other way round"
    )


# ---- what is refused


def _faults(kind: str, found: RayObject, address: str) -> Iterator[str]:
    if found.label != names.BUILT_IN:
        yield f'{_WHERE}: "{(found.label or "")[:_SHOWN]}" is not valid; allowed: {names.BUILT_IN}'
    for key in _ANNOTATIONS:
        if value := found.metadata.annotations.get(key):
            yield _beside(f"metadata.annotations[{key}]", value)
    if found.spec.submission_mode == "SidecarMode":
        yield (
            'spec.submissionMode: "SidecarMode" is not valid beside the label '
            f"{names.HEAD_FAULT_TOLERANCE}: its head is never made again; allowed: another mode"
        )
    where, spec = _cluster_spec(kind, found.spec)
    if spec is not None:
        yield from _faults_of_spec(where, spec, address)


def _cluster_spec(kind: str, spec: _Spec) -> tuple[str, ClusterSpec | None]:
    if kind == "RayJob":
        return f"spec.{_CLUSTER_OF[kind]}", spec.ray_cluster_spec
    if kind == "RayService":
        return f"spec.{_CLUSTER_OF[kind]}", spec.ray_cluster_config
    return "spec", spec


def _faults_of_spec(where: str, spec: ClusterSpec, address: str) -> Iterator[str]:
    if _is_too_old(spec.ray_version):
        least = ".".join(map(str, OLDEST_RAY))
        yield f'{where}.rayVersion: "{spec.ray_version}" is not valid; allowed: {least} or newer'
    head = f"{where}.headGroupSpec"
    for key in _PARAMETERS:
        if spec.head_group_spec.ray_start_params.get(key):
            yield _beside(f"{head}.rayStartParams[{key}]")
    containers = spec.head_group_spec.template.spec.containers[:1]
    for variable in (each.name for container in containers for each in container.env):
        if variable in _VARIABLES:
            yield _beside(f"{head}.template.spec.containers[0].env[{variable}]")
    yield from _faults_of_options(f"{where}.{FIELD}", spec.gcs_fault_tolerance_options, address)


def _faults_of_options(where: str, options: Json | None, address: str) -> Iterator[str]:
    """Options of a copy are written anew; what would be lost in silence is refused."""
    for key in _OWN_OPTIONS:
        if value := (options or {}).get(key):
            yield _beside(f"{where}.{key}", value)
    given = (options or {}).get("redisAddress", address)
    if given != address:
        yield _beside(f"{where}.redisAddress", given)


def _beside(field: str, value: object = None) -> str:
    """Say that a field cannot be there; what may be a password is not shown."""
    shown = "" if value is None else f' "{str(value)[:_SHOWN]}"'
    return (
        f"{field}:{shown} is not valid beside the label {names.HEAD_FAULT_TOLERANCE}, by which "
        "Muster says where the state is; allowed: none"
    )


def _is_too_old(version: str | None) -> bool:
    """Say whether a version is known to be too old; what is no version is left to its image."""
    match = re.match(r"v?(\d{1,6})\.(\d{1,6})(?!\d)", version or "")
    return match is not None and (int(match[1]), int(match[2])) < OLDEST_RAY
