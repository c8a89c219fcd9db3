"""Tests by dry run whether pods can be evicted and RayJobs suspended, and reads the budgets."""

from collections.abc import Awaitable
from typing import TypeAlias

from coordinator.messages.actions import ReadBudgets, TryEviction, TrySuspension
from coordinator.messages.events import Event
from coordinator.messages.write_ends import BudgetsRead, EvictionTried
from coordinator.metrics import EVICTIONS
from coordinator.shell.writes.pod_writes import eviction
from coordinator.shell.writes.ray_writes import job_path, suspension
from kube.api.bodies import decode
from kube.api.client import Client
from kube.api.errors import KubeError, NotFound, is_of_budget
from kube.api.resources import BUDGETS
from kube.codec.budget import Budget, budget_of
from kube.objects.policy import BudgetList
from scheduling.model.gang import GangKey

EvictionQuestion: TypeAlias = TryEviction | TrySuspension | ReadBudgets

DRY_RUN = "?dryRun=All"


class EvictionDryRuns:
    """Asks what would become of gangs that are to make room; nothing is written."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def carry_out(self, action: EvictionQuestion) -> list[Event]:
        """Ask, and say what was answered."""
        match action:
            case TryEviction(gang, namespace, name, uid):
                return [await _tried(gang, uid, self._evict(namespace, name, uid))]
            case TrySuspension():
                return [await _tried(action.gang, action.job.metadata.uid, self._suspend(action))]
            case ReadBudgets():
                return await self._read_budgets(action)

    async def _evict(self, namespace: str, name: str, uid: str) -> None:
        path, body = eviction(namespace, name, uid)
        await self._client.create(f"{path}{DRY_RUN}", body)

    async def _suspend(self, action: TrySuspension) -> None:
        """Ask for a RayJob whichever its version is by now."""
        changes = suspension(action.job, action.suspended_for)
        del changes["metadata"]["resourceVersion"]
        await self._client.merge_patch(f"{job_path(action.job)}{DRY_RUN}", changes)

    async def _read_budgets(self, action: ReadBudgets) -> list[Event]:
        found: list[Budget] = []
        try:
            async for page in self._client.list(BUDGETS.path(action.namespace)):
                found += map(budget_of, decode(page, BudgetList).items)
        except KubeError as error:
            return [BudgetsRead(action.gang, action.namespace, (), str(error))]
        return [BudgetsRead(action.gang, action.namespace, tuple(found))]


async def _tried(gang: GangKey, uid: str, dry_run: Awaitable[None]) -> EvictionTried:
    """Return what the API server said to a dry run; what is gone is in no way."""
    try:
        await dry_run
    except NotFound:
        return EvictionTried(gang, uid, None)
    except KubeError as error:
        EVICTIONS.labels("would_be_refused").inc()
        return EvictionTried(gang, uid, str(error), is_of_budget(error))
    EVICTIONS.labels("would_be_accepted").inc()
    return EvictionTried(gang, uid, None)
