"""Decodes MCAD's QuotaSubtree: `quota.codeflare.dev/v1alpha1`."""

from cli.imports.objects import Foreign
from kube.objects.base import OrNull, Part, Quantities, Slim


class Quotas(Part, frozen=True):
    """What a node of a tree may use, and whether it may borrow."""

    requests: OrNull[Quantities] = {}
    hard_limit: bool = False
    disabled: bool = False


class Child(Slim, frozen=True):
    """A node of a tree."""

    name: str = ""
    quotas: Quotas | None = None


class SubtreeSpec(Part, frozen=True):
    """Some nodes of a tree, all below the same one."""

    parent: str = ""
    children: OrNull[tuple[Child, ...]] = ()


class QuotaSubtree(Foreign, frozen=True):
    """A part of a tree of quotas."""

    spec: SubtreeSpec = SubtreeSpec()
