"""Asks the API server what a user may do, and which review an object needs before its creation.

To create a Role or a RoleBinding on behalf of a user, more is asked than the right to create it:
the API server lets no account grant what it does not hold, and it judges the account that sends the
object.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from kube.api.client import Client
from kube.api.kinds import Served
from kube.api.resources import Resource
from kube.objects.base import Slim
from kube.objects.user import User

_RBAC: Final = "rbac.authorization.k8s.io"

REVIEWS: Final = Resource(
    group="authorization.k8s.io", version="v1", plural="subjectaccessreviews", namespaced=False
)
OWN_REVIEWS: Final = Resource(
    group="authorization.k8s.io", version="v1", plural="selfsubjectaccessreviews", namespaced=False
)
_HEAD: Final = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
_OWN_HEAD: Final = {**_HEAD, "kind": "SelfSubjectAccessReview"}


@dataclass(frozen=True, slots=True, order=True)
class Access:
    """Something that is done to objects of a namespace; without a name, to any of them."""

    verb: str
    group: str
    version: str
    resource: str
    namespace: str
    name: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        named = f" {self.name}" if self.name else ""
        return f"{self.verb} {resource}{named} in namespace {self.namespace}"


class _RoleRef(Slim, frozen=True):
    kind: str = ""
    name: str = ""


class _Named(Slim, frozen=True):
    name: str = ""


class _Grants(Slim, frozen=True):
    """What a Role or a RoleBinding says that its creator needs further rights for."""

    metadata: _Named = _Named()
    role_ref: _RoleRef = _RoleRef()


_GRANTS: Final = msgspec.json.Decoder(_Grants)


def to_create(served: Served, namespace: str, template: bytes | msgspec.Raw) -> tuple[Access, ...]:
    """List what a user must be allowed, so that an object may be created on the user's behalf."""
    found = served.resource
    create = Access("create", found.group, found.version, found.plural, namespace)
    if found.group != _RBAC:
        return (create,)
    try:
        grants = _GRANTS.decode(template)
    except msgspec.DecodeError:
        return (create, *_granting(found, namespace, _Grants()))
    return (create, *_granting(found, namespace, grants))


def to_keep(served: Served, namespace: str) -> tuple[Access, ...]:
    """List what is needed to create objects of a kind, to read them and to delete them again.

    What a Role grants is not in it: an account may grant what it holds itself.
    """
    found = served.resource
    create = Access("create", found.group, found.version, found.plural, namespace)
    return create, replace(create, verb="get"), replace(create, verb="delete")


def _granting(found: Resource, namespace: str, grants: _Grants) -> tuple[Access, ...]:
    if found.plural == "rolebindings":
        roles = "clusterroles" if grants.role_ref.kind == "ClusterRole" else "roles"
        return (Access("bind", _RBAC, found.version, roles, namespace, grants.role_ref.name),)
    name = grants.metadata.name
    return (Access("escalate", _RBAC, found.version, found.plural, namespace, name),)


class _Status(Slim, frozen=True):
    allowed: bool = False


class _Review(Slim, frozen=True):
    status: _Status = _Status()


async def is_allowed(
    client: Client, user: User, access: Access, *, within: float | None = None
) -> bool:
    """Ask whether a user may do something; KubeError where there is no answer."""
    review = {**_HEAD, "spec": _spec(user, access)}
    answer = await client.create(REVIEWS.path(), review, as_=_Review, timeout=within)
    return answer.status.allowed


async def is_caller_allowed(client: Client, access: Access) -> bool:
    """Ask whether the account of the client may do something; KubeError where there is no answer.

    Whoever is logged in may ask that, and nothing is created by it.
    """
    review = {**_OWN_HEAD, "spec": {"resourceAttributes": _attributes(access)}}
    answer = await client.create(OWN_REVIEWS.path(), review, as_=_Review)
    return answer.status.allowed


def _attributes(access: Access) -> dict[str, str]:
    return {
        "verb": access.verb,
        "group": access.group,
        "version": access.version,
        "resource": access.resource,
        "namespace": access.namespace,
        "name": access.name,
    }


def _spec(user: User, access: Access) -> dict[str, Any]:
    return {
        "resourceAttributes": _attributes(access),
        "user": user.username,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
