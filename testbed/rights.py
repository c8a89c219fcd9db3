"""Which rights of service accounts were used: what roles grant, against what was asked.

A `Grant` is the smallest part of a rule: one verb on one resource, of one name where the rule has
names, for one account. Everything here is computed from its arguments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

Json = Mapping[str, Any]

_ROLES = ("Role", "ClusterRole")
_BINDINGS = ("RoleBinding", "ClusterRoleBinding")
_KNOWN = {"apiGroups", "resources", "resourceNames", "verbs"}


class Asked(NamedTuple):
    """One request of a service account, as the API server's audit log tells it."""

    account: str
    verb: str
    group: str
    resource: str
    """With its subresource, as rules have it: `pods/status`; the path where there is none."""
    name: str
    namespace: str
    allowed: bool

    def __str__(self) -> str:
        """The request in words."""
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.account}: {_words(self.verb, self.group, self.resource, self.name)}{where}"


class Grant(NamedTuple):
    """One verb on one resource that a role gives an account."""

    role: str
    account: str
    verb: str
    group: str
    resource: str
    name: str
    """Of the one object that is granted; empty where it is every one."""
    namespace: str
    """Empty where it is all of the cluster."""

    def __str__(self) -> str:
        """The grant in words."""
        where = f" in {self.namespace}" if self.namespace else ""
        what = _words(self.verb, self.group, self.resource, self.name)
        return f"{self.account} may {what}{where} ({self.role})"

    def allows(self, asked: Asked) -> bool:
        """Tell whether this alone allows the request, as RBAC judges it."""
        return (
            (self.account, self.verb, self.group, self.resource)
            == (asked.account, asked.verb, asked.group, asked.resource)
            and self.name in ("", asked.name)
            and self.namespace in ("", asked.namespace)
        )


def _words(verb: str, group: str, resource: str, name: str) -> str:
    """The way kubectl writes it: `patch pods/status`, `get leases.coordination.k8s.io one`."""
    kind, slash, subresource = resource.partition("/")
    full = f"{kind}.{group}" if group else kind
    return " ".join(filter(None, (verb, f"{full}{slash}{subresource}", name)))


def grants_of(objects: Iterable[Json], namespace: str) -> frozenset[Grant]:
    """What the roles among these objects grant the service accounts of a namespace.

    A role that is bound and not among them is not of these manifests, and is left out.
    """
    known = list(objects)
    roles = [each for each in known if each["kind"] in _ROLES]
    bindings = (each for each in known if each["kind"] in _BINDINGS)
    return frozenset(
        grant
        for binding in bindings
        for account in _accounts(binding, namespace)
        for role in roles
        if _is_bound(role, binding)
        for grant in _grants(role, roles, account, binding["metadata"].get("namespace", ""))
    )


def _accounts(binding: Json, namespace: str) -> Iterator[str]:
    for subject in binding["subjects"]:
        if (subject["kind"], subject.get("namespace")) == ("ServiceAccount", namespace):
            yield subject["name"]


def _is_bound(role: Json, binding: Json) -> bool:
    reference, metadata = binding["roleRef"], role["metadata"]
    same = (role["kind"], metadata["name"]) == (reference["kind"], reference["name"])
    return same and metadata.get("namespace") in (None, binding["metadata"].get("namespace"))


def _grants(role: Json, roles: list[Json], account: str, namespace: str) -> Iterator[Grant]:
    title = f"{role['kind']} {role['metadata']['name']}"
    for rule in _rules(role, roles):
        parts = (rule["verbs"], rule["apiGroups"], rule["resources"])
        for verb, group, resource in product(*parts):
            for name in rule.get("resourceNames", ("",)):
                yield Grant(title, account, verb, group, resource, name, namespace)


def _rules(role: Json, roles: list[Json]) -> Iterator[Json]:
    """The rules of a role, and those that are aggregated to it."""
    for source in (role, *(each for each in roles if _aggregates(role, each))):
        for rule in source.get("rules") or ():
            _check(rule, source["metadata"]["name"])
            yield rule


def _aggregates(role: Json, other: Json) -> bool:
    labels = other["metadata"].get("labels", {}).items()
    selectors = role.get("aggregationRule", {}).get("clusterRoleSelectors", ())
    return any(each["matchLabels"].items() <= labels for each in selectors)


def _check(rule: Json, role: str) -> None:
    """Refuse a rule of which it cannot be said what use of it would be."""
    for key in rule:
        if key not in _KNOWN:
            raise ValueError(f"role {role}: {key} in a rule; allowed: {', '.join(sorted(_KNOWN))}")
        if "*" in rule[key]:
            raise ValueError(f"role {role}: * in {key}; allowed: what is named")


class Uses:
    """Which grants were used so far, and what was refused."""

    def __init__(self, grants: Iterable[Grant]) -> None:
        self.grants = frozenset(grants)
        self.used: set[Grant] = set()
        self.refused: set[str] = set()
        self._index: defaultdict[tuple[str, str, str, str], list[Grant]] = defaultdict(list)
        for grant in self.grants:
            self._index[grant.account, grant.verb, grant.group, grant.resource].append(grant)

    def take_in(self, asked: Iterable[Asked]) -> None:
        """Count the grants that requests which were allowed made use of."""
        for each in asked:
            if each.allowed:
                self.used.update(self._allowing(each))

    def refuse(self, asked: Iterable[Asked], where: str) -> None:
        """Keep what was refused, with where.

        An API server that starts refuses everything until it has read its roles: what is refused
        and granted says nothing of the rights.
        """
        refused = (each for each in asked if not each.allowed and not self._allowing(each))
        self.refused.update(f"{each} ({where})" for each in refused)

    def _allowing(self, asked: Asked) -> list[Grant]:
        return [grant for grant in self._index.get(asked[:4], ()) if grant.allows(asked)]

    @property
    def unused(self) -> frozenset[Grant]:
        """The grants that no request made use of."""
        return self.grants - self.used
