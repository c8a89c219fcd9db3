"""Counts holes: how many pods of 1, 2, 4 and 8 GPUs still fit, in each pool of nodes.

A sum of free GPUs says little: eight on one node take a pod of eight, two on each of four nodes
take none. So each size is counted node by node, each as if no other came, with the processor and
memory that pods of the cluster typically take beside a GPU (`scoring.stranded_devices`). What is
free is neither used nor reserved. GPUs are stranded where what is left beside them is too little
for such pods. Nodes that are cordoned or being deleted, or that the node controller has tainted
(not ready, unreachable, under pressure), have no holes; all other taints are taken for tolerated,
as those of GPU nodes are by GPU pods.

A pool is the value of the first of some labels that a node has, mostly the model of its GPUs. Its
name goes into metrics, so of each resource only the largest pools keep theirs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from scheduling.filters.node_removal import staying
from scheduling.model.amounts import CPU, MEMORY, PODS, Amounts, Mask, Positions
from scheduling.model.node import Taint
from scheduling.scoring.node_scores import PARTS, median_use, sample, served, use_beside
from scheduling.state.node_snapshot import NodeAttributes, NodeSnapshot

SIZES = (1, 2, 4, 8)
"""GPUs of one pod."""

MOST_POOLS = 20
OTHER = "other"
"""The name of all pools beyond the largest."""

UNLABELLED = "none"
"""The name of the pool of nodes without any of the labels."""

STATE_OF_NODE = "node.kubernetes.io/"
"""Taints that say how a node is, which no pod that is to run tolerates."""


@dataclass(frozen=True, slots=True)
class GpuPools:
    """Which resources are GPUs, and which labels name the pool of a node, the first one first."""

    resources: tuple[str, ...] = ("nvidia.com/gpu", "amd.com/gpu")
    labels: tuple[str, ...] = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator")

    def beside(self, more: Iterable[str]) -> "GpuPools":
        """Return the same with more resources."""
        return replace(self, resources=(*self.resources, *more))


@dataclass(frozen=True, slots=True)
class Pool:
    """The GPUs of one kind in one pool: all, those that are reserved, and those that are neither.

    Of the latter, `free` can take pods, `unschedulable` are on nodes that take none now, and
    `stranded` is the part of `free` that lacks processor or memory. `holes` has one count for each
    of `SIZES`.
    """

    name: str
    resource: str
    allocatable: int
    reserved: int
    free: int
    unschedulable: int
    stranded: float
    holes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Named:
    """The pools by name: `of[i]` is that of node i."""

    names: tuple[str, ...]
    of: Positions


Reserved = Mapping[tuple[str, str], int]
"""What is promised and not taken yet, by node and resource. It is part of what is used."""


def pools(nodes: NodeSnapshot, reserved: Reserved, asked: GpuPools) -> tuple[Pool, ...]:
    """Return the pools that have GPUs, by resource and then by size, the largest first."""
    found = [name for name in asked.resources if name in nodes.row]
    named = _named(nodes.traits, asked.labels)
    return tuple(pool for each in found for pool in _pools(nodes, each, reserved, named))


@dataclass(frozen=True, eq=False, slots=True)
class Holes:
    """Of each of `SIZES` and each node, how many pods of so many GPUs still fit there.

    `typical` counts the processor and memory that pods typically take beside a GPU. `at_most`
    counts GPUs and places for pods alone, so that pods that are content with less are in it.
    """

    typical: Amounts
    at_most: Amounts

    def on(self, nodes: Mask) -> tuple["Hole", ...]:
        """Add up the holes on some of the nodes, by size."""
        sums = (each[:, nodes].sum(axis=1).tolist() for each in (self.typical, self.at_most))
        return tuple(Hole(*each) for each in zip(SIZES, *sums, strict=True))


class Hole(NamedTuple):
    """How many pods of `size` GPUs still fit, with what is typical beside them, and at most."""

    size: int
    typical: int
    at_most: int


def holes(nodes: NodeSnapshot, resource: str) -> Holes:
    """Count the holes of a resource, which has a row, node by node."""
    free = _free(nodes, resource)
    beside = _beside(nodes, resource)
    return Holes(
        np.stack([_fitting(size, free, beside, nodes) for size in SIZES]),
        np.stack([_fitting(size, free, (), nodes) for size in SIZES]),
    )


def _free(nodes: NodeSnapshot, resource: str) -> Amounts:
    """Return what is neither used nor reserved on nodes that take pods."""
    idle = np.maximum(nodes.free[nodes.row[resource]], 0)
    return np.where(_takes_pods(nodes.traits), idle, 0)


def _pools(nodes: NodeSnapshot, resource: str, reserved: Reserved, named: _Named) -> Iterator[Pool]:
    row, beside = nodes.row[resource], _beside(nodes, resource)
    idle = np.maximum(nodes.free[row], 0)
    free = _free(nodes, resource)
    counts = np.stack(
        [
            nodes.allocatable[row],
            _promised(nodes, resource, reserved),
            free,
            idle - free,
            free * PARTS - served(free * PARTS, [left for left, _ in beside], _each(beside)),
            *(_fitting(size, free, beside, nodes) for size in SIZES),
        ]
    )
    for name, sums in _capped(_summed(counts, named)).items():
        whole, promised, can_take, cannot, stranded, *holes = sums.tolist()
        if whole:
            yield Pool(
                *(name, resource, whole, promised, can_take, cannot), stranded / PARTS, tuple(holes)
            )


def _promised(nodes: NodeSnapshot, resource: str, reserved: Reserved) -> Amounts:
    promised = np.zeros(len(nodes.names), dtype=np.int64)
    for (name, of), amount in reserved.items():
        if of == resource and name in nodes.index:
            promised[nodes.index[name]] = amount
    return promised


def _capped(by_pool: dict[str, Amounts]) -> dict[str, Amounts]:
    """Return the largest pools, and the sum of all others."""
    largest = sorted(by_pool, key=lambda name: (-by_pool[name][0], name))
    kept = {name: by_pool[name] for name in largest[:MOST_POOLS]}
    for name in largest[MOST_POOLS:]:
        kept[OTHER] = kept.get(OTHER, 0) + by_pool[name]
    return kept


Beside = tuple[tuple[Amounts, int], ...]
"""Of each resource that GPUs need beside them: what is free per node, and what one GPU takes."""


def _each(beside: Beside) -> list[int]:
    return [typical for _, typical in beside]


def _beside(nodes: NodeSnapshot, resource: str) -> Beside:
    """Return processor and memory beside the GPUs, with what is typical of pods that run."""
    rows = [nodes.row[name] for name in (CPU, MEMORY) if name in nodes.row]
    at = sample(len(nodes.names))
    in_use = nodes.used[nodes.row[resource]][at]
    typical = median_use(use_beside(in_use, [nodes.used[row][at] for row in rows]))
    return tuple((nodes.free[row], each) for row, each in zip(rows, typical, strict=True))


def _fitting(size: int, free: Amounts, beside: Beside, nodes: NodeSnapshot) -> Amounts:
    """Return how many pods of so many GPUs fit on each node."""
    fit = free // size
    for left, typical in beside:
        if typical:
            fit = np.minimum(fit, left // (typical * size))
    if PODS in nodes.row:
        fit = np.minimum(fit, nodes.free[nodes.row[PODS]])
    return np.maximum(fit, 0)


def _summed(counts: Amounts, named: _Named) -> dict[str, Amounts]:
    """Add up rows of counts by pool."""
    sums = np.zeros((len(named.names), len(counts)), dtype=np.int64)
    np.add.at(sums, named.of, counts.T)
    return dict(zip(named.names, sums, strict=True))


def _takes_pods(traits: NodeAttributes) -> Mask:
    """Return the nodes that take new pods."""
    return traits.remembered("takes pods", lambda: _derive_takers(traits))


def _derive_takers(traits: NodeAttributes) -> Mask:
    mask, stay = traits.taints.where(_is_open_to_pods), staying(traits)
    return mask if stay is None else mask & stay


def _is_open_to_pods(cordoned: bool, taints: tuple[Taint, ...]) -> bool:  # noqa: FBT001
    return not cordoned and not any(map(_keeps_pods_off, taints))


def _keeps_pods_off(taint: Taint) -> bool:
    return taint.key.startswith(STATE_OF_NODE) and taint.effect != "PreferNoSchedule"


def _named(traits: NodeAttributes, labels: tuple[str, ...]) -> _Named:
    return traits.remembered(("pools", labels), lambda: _name(traits, labels))


def _name(traits: NodeAttributes, labels: tuple[str, ...]) -> _Named:
    """Name the pool of each node; values are those of nodes, which no tenant writes."""
    codes: dict[str, int] = {}
    of = [codes.setdefault(pool_name(node.labels, labels), len(codes)) for node in traits.nodes]
    return _Named(tuple(codes), np.array(of, dtype=np.intp))


def pool_name(found: Mapping[str, str], labels: Sequence[str]) -> str:
    """Return the name of the pool of a node with these labels."""
    return next((found[label] for label in labels if found.get(label)), UNLABELLED)
