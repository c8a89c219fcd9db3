"""Finds Muster's namespace: the one of the coordinator's service account."""

from typing import Final

from cli.endings import NotAllowed, NotServed
from cli.read.reader import Reader
from kube.api.resources import Resource
from kube.objects.base import ObjectMeta, OrNull, Part, Slim
from kube.objects.names import COORDINATOR, DEFAULT_NAMESPACE, PART_OF, PART_OF_MUSTER

BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", namespaced=False
)
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments")


class _Subject(Slim, frozen=True):
    kind: str = ""
    name: str = ""
    namespace: str = ""


class AccountBinding(Part, frozen=True):
    """A ClusterRoleBinding, by the accounts that it gives a role to."""

    metadata: ObjectMeta = ObjectMeta()
    subjects: OrNull[tuple[_Subject, ...]] = ()


class _Deployment(Slim, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


async def find_home(reader: Reader) -> str:
    """Name the namespace of Muster, by what is left of it; raises CannotRead.

    The binding counts first: a tenant can make a Deployment of any name.
    """
    return await home_by_binding(reader) or await _by_deployment(reader) or DEFAULT_NAMESPACE


async def home_by_binding(reader: Reader) -> str:
    """Name the namespace of the coordinator's account; empty where no binding can be read."""
    try:
        found = await reader.get(BINDINGS, AccountBinding, COORDINATOR)
    except (NotAllowed, NotServed):
        return ""
    accounts = (each for each in found.subjects if _is_coordinator(each)) if found else ()
    return next((each.namespace for each in accounts), "")


def _is_coordinator(subject: _Subject) -> bool:
    return (subject.kind, subject.name) == ("ServiceAccount", COORDINATOR)


async def _by_deployment(reader: Reader) -> str:
    """Name the namespace of its Deployment, of several the usual one, then the first by name."""
    try:
        found = await reader.list(DEPLOYMENTS, _Deployment)
    except NotAllowed:
        return ""
    mine = (each.metadata for each in found if each.metadata.name == COORDINATOR)
    places = {each.namespace for each in mine if each.labels.get(PART_OF) == PART_OF_MUSTER}
    return DEFAULT_NAMESPACE if DEFAULT_NAMESPACE in places else min(places, default="")
