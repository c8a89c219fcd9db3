"""Decodes the fields of objects that are removed, stopped or resumed."""

import msgspec

from kube.objects.base import Labels, ObjectMeta, OrNull, Part, Slim


class OwnMeta(ObjectMeta, frozen=True):
    """What an object says about itself, with what holds it when it is deleted."""

    finalizers: OrNull[tuple[str, ...]] = ()


class AnyObject(Slim, frozen=True):
    """An object of any kind."""

    metadata: OwnMeta = OwnMeta()


class LeaseSpec(Slim, frozen=True):
    """The holder of a Lease, for how long it promises to be the only one, and its epoch."""

    holder_identity: OrNull[str] = ""
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    acquire_time: str | None = None


class Lease(Slim, frozen=True):
    """The record of an election."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()


class _Suspendable(Slim, frozen=True):
    suspend: bool | None = None


class Cluster(Slim, frozen=True):
    """A RayCluster, as far as it is held."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _Suspendable = _Suspendable()


class ConfigMap(Part, frozen=True):
    """A ConfigMap, which may hold kube-scheduler's configuration."""

    metadata: ObjectMeta = ObjectMeta()
    data: OrNull[Labels] = msgspec.field(default_factory=dict)
