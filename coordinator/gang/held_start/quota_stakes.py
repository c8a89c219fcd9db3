"""Holds what ResourceQuotas count of one gang."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from kube.foreseen.namespace_quota import Charges


class Templates(NamedTuple):
    """What was read off the templates of a gang last."""

    charges: Mapping[str, Charges] = MappingProxyType({})
    """Of one pod, by pod set."""
    priority: int = 0
    """The lowest of the pods to come."""
    read: tuple[int, int, int] | None = None
    """The generation, and the editions of the rules and of templates that this was made of."""


UNREAD = Templates()


@dataclass(slots=True)
class QuotaStake:
    """What ResourceQuotas count of the gang. Written by `reconcile.held_start.quota_stakes`."""

    text: str = ""
    """Says who has the quota that it lacks."""
    templates: Templates = UNREAD
