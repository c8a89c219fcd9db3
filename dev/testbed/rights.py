"""Which rights of service accounts were used: what roles grant, against what was asked.

A `Grant` is the smallest part of a rule: one verb on one resource, of one name where the rule has
names, for one account. Everything here is computed from its arguments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

Json = Mapping[str, Any]

_ROLES = ("Role", "ClusterRole")
_EVERYBODY = ("system:authenticated", "system:serviceaccounts")
_BINDINGS = ("RoleBinding", "ClusterRoleBinding")
_KNOWN = {"apiGroups", "resources", "resourceNames", "verbs"}

PROGRAMS = ("muster", "kube-scheduler/")
"""How the User-Agent of what runs under Muster's accounts begins."""


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
    agent: str = "muster"
    """What sent it, as its header User-Agent says."""

    @property
    def is_of_a_program(self) -> bool:
        """Whether a program that is installed sent it, and no client of a test."""
        return self.agent.startswith(PROGRAMS)

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


def grants_of(
    objects: Iterable[Json], namespace: str, of_others: Collection[tuple[str, str]] = ()
) -> frozenset[Grant]:
    """What the roles among these objects grant the service accounts of a namespace.

    `of_others` are accounts with a role that is not among them, and is left out: its use cannot be
    shown. An account that is bound to any other such role, or that has rights by a group or as a
    user, is an error.
    """
    known = list(objects)
    _check_bindings(known, namespace, of_others)
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


def _check_bindings(
    objects: Iterable[Json], namespace: str, of_others: Collection[tuple[str, str]]
) -> None:
    """Refuse what grants accounts of the namespace something that is not seen here."""
    known = list(objects)
    roles = [each for each in known if each["kind"] in _ROLES]
    for binding in known:
        if binding["kind"] == "List":
            raise ValueError("kind List; allowed: each object by itself")
        if binding["kind"] not in _BINDINGS:
            continue
        title = f"{binding['kind']} {binding['metadata']['name']}"
        wide = [each["name"] for each in binding["subjects"] if _covers(each, namespace)]
        if wide:
            raise ValueError(f"{title}: subject {wide[0]}; allowed: service accounts by name")
        here = any(_is_bound(role, binding) for role in roles)
        named = {(each, binding["roleRef"]["name"]) for each in _accounts(binding, namespace)}
        for account, role in sorted(() if here else named.difference(of_others)):
            raise ValueError(f"{title}: role {role} of {account} is not among these manifests")


def _covers(subject: Json, namespace: str) -> bool:
    """Say whether a subject that is no service account stands for some of the namespace."""
    name = subject["name"]
    groups = (*_EVERYBODY, f"system:serviceaccounts:{namespace}")
    if subject["kind"] == "User":
        return str(name).startswith(f"system:serviceaccount:{namespace}:")
    return subject["kind"] == "Group" and name in groups


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
            for name in rule.get("resourceNames") or ("",):  # an empty list is every name
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
        if any("*" in each for each in rule[key] or ()):  # also */status
            raise ValueError(f"role {role}: * in {key}; allowed: what is named")


def _narrowness(grant: Grant) -> int:
    """How much a grant is narrowed: by a name more than by a namespace."""
    return 2 * bool(grant.name) + bool(grant.namespace)


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
        """Count the grants that requests of programs which were allowed made use of.

        Of several that allow one request it is the narrowest: a wider one is not needed for it.
        """
        for each in asked:
            if each.allowed and each.is_of_a_program:
                allowing = self._allowing(each)
                narrowest = max(map(_narrowness, allowing), default=0)
                self.used.update(grant for grant in allowing if _narrowness(grant) == narrowest)

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
