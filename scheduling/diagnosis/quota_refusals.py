"""Words refusals by queues: quota is used up, or a gang ahead may not be passed."""

import re
from math import inf

import numpy as np

from scheduling.diagnosis.amount_texts import amount_up, bounded, lasting, written
from scheduling.model.amounts import Amounts
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.quantity import request_amount
from scheduling.model.verdict import Reason, Refusal
from scheduling.queueing.quota_tree import QuotaTree


def over_quota(
    tree: QuotaTree, queue: str, demand: Amounts, used: Amounts, available: Amounts
) -> Refusal:
    """Say which quota does not cover what a gang asks for.

    Rows over the resources of the tree: `demand` of the gang, `used` and `available` of its queue.
    """
    at = tree.index[queue]
    if (demand > tree.most[at]).any():
        return Refusal(Reason.QUOTA_EXCEEDED, bounded(_never(tree, at, demand), "; "))
    said = _for_now(tree, at, demand, used, np.maximum(available, 0))
    return Refusal(Reason.QUOTA_EXCEEDED, bounded(said, "; "))


def _never(tree: QuotaTree, at: int, demand: Amounts) -> list[str]:
    return [
        f"queue {tree.names[at]} can hold at most {_amount(tree, column, tree.most[at])} with all "
        f"that it may borrow, and the gang needs {_plain(tree, column, demand)} at once"
        for column in np.flatnonzero(demand > tree.most[at]).tolist()
    ]


def _for_now(
    tree: QuotaTree, at: int, demand: Amounts, used: Amounts, available: Amounts
) -> list[str]:
    return [
        f"queue {tree.names[at]} uses {_plain(tree, column, used)} of its quota of "
        f"{_amount(tree, column, tree.subtree[at])} and may take {_plain(tree, column, available)} "
        f"more, and the gang needs {_plain(tree, column, demand)}"
        for column in np.flatnonzero(demand > available).tolist()
    ]


_LACKED = re.compile(
    r"quota of \S+ (\S+) and may take \S+ more, and the gang needs ([\d.]+(?:m|[KMG]i)?)(?=;|$)"
)


def lacked(message: str) -> dict[str, int]:
    """Read what a gang asks for of the resources that such a refusal says to be used up.

    The message alone says it to those who may not read the gang's pods, or where none exists yet.
    """
    return {each: request_amount(each, amount) for each, amount in _LACKED.findall(message)}


def waits_behind(first: GangKey, queue: str) -> Refusal:
    """Say that a gang waits behind a blocked one that nothing may pass."""
    said = f"waits behind {first}: nothing passes a blocked gang in queue {queue}"
    return Refusal(Reason.QUEUE_BLOCKED, said)


BLOCKS_NOTHING = (
    "the nodes could not hold the whole gang with nothing but pods of DaemonSets and static pods "
    "on them, so it holds back no other gang"
)


def would_delay(blocked: PendingGang, wait: float | None, duration: float) -> Refusal:
    """Say that there is room for a gang, but a blocked one would wait longer for it.

    `wait` is in how many seconds the blocked one is expected to start; None where it has waited so
    long that nothing passes it.
    """
    if wait is None:
        said = f"there is room, but {blocked.key} has waited so long for it that nothing passes it"
    else:
        runs = "names no expected duration" if duration == inf else f"runs for {lasting(duration)}"
        said = (
            f"there is room, but {blocked.key} is expected to start in {lasting(wait)}, and would "
            f"start later for this gang, which {runs}"
        )
    return Refusal(Reason.QUEUE_BLOCKED, said)


def waits_for_lent(blocked: PendingGang) -> Refusal:
    """Say that there is room, but a gang waits for quota that others borrow from its queue."""
    said = (
        f"there is room, but {blocked.key} waits for quota that its own queue has lent, so nothing "
        "more of it is borrowed"
    )
    return Refusal(Reason.QUEUE_BLOCKED, said)


def _amount(tree: QuotaTree, column: int, row: Amounts) -> str:
    return amount_up(tree.resources[column], int(row[column]))


def _plain(tree: QuotaTree, column: int, row: Amounts) -> str:
    return written(tree.resources[column], int(row[column]), up=1)
