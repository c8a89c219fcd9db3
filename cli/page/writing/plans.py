"""Plans what a person asks of the page: each is the plan of a verb of the command."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from cli.endings import CannotRead, Unusable
from cli.managing.cluster import changed
from cli.managing.forms import ClusterForm, JobForm, QueueForm
from cli.managing.job import new_job
from cli.managing.owners import check_free
from cli.managing.patches import state_of
from cli.managing.queue import new_queue
from cli.managing.scaling import scaled
from cli.managing.written import read_targets
from cli.read.preview import preview
from cli.read.ray.ray_object import read_object, workers_of
from cli.read.wanted import like_another, of_form, on_cluster
from cli.report.fit import FitReport
from cli.write.creating import plan_creation, plan_queue_edit
from cli.write.deleting import plan_deletion, plan_job_deletion
from cli.write.editing import plan_edit
from cli.write.managing import outdated
from cli.write.plan import Plan
from cli.write.sleeping import plan_resumption, plan_suspension
from cli.write.writer import Writer
from kube.api.resources import GANG_QUEUES, RAY_CLUSTERS, RAY_JOBS, Resource
from kube.objects.base import Slim

Json = dict[str, Any]


class Request(Slim, frozen=True, forbid_unknown_fields=True):
    """What a form sends. `state` is that of the object as it was shown.

    Without `agreed` nothing is written; with it, it is what a person was asked and agreed to.
    """

    state: str = ""
    agreed: str | None = None
    form: ClusterForm = ClusterForm()
    job: JobForm = JobForm()
    queue: QueueForm = QueueForm()
    like: str = ""
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for one object, by one person."""

    writer: Writer
    namespace: str
    name: str
    request: Request


@dataclass(frozen=True, slots=True)
class Shown:
    """A plan, the object as YAML where it is a whole one, and whether it would start now."""

    plan: Plan
    body: Json | None = None
    foretold: bool = False
    """Whether it is to be asked if it would start now."""

    @property
    def yaml(self) -> str:
        """Return the object for `kubectl apply`."""
        return "" if self.body is None else str(yaml.safe_dump(self.body, sort_keys=False))

    async def fit(self, writer: Writer) -> tuple[FitReport | None, str]:
        """Return whether it would start now, or why that is not known."""
        if not self.foretold or self.body is None:
            return None, ""
        try:
            return await preview(writer.reader, self.body), ""
        except CannotRead as fault:
            return None, f"not known whether it would start now: {fault}"


async def _create(asked: Asked) -> Shown:
    body = await _cluster(asked)
    return Shown(plan_creation(asked.writer, RAY_CLUSTERS, body), body, foretold=True)


async def _cluster(asked: Asked) -> Json:
    place, name, request = asked.namespace, asked.name, asked.request
    if request.like:
        return await like_another(asked.writer.reader, place, name, request.like, request.form)
    return of_form(place, name, request.form)


async def _edit(asked: Asked) -> Shown:
    found, form = await _shown_before(asked, RAY_CLUSTERS), asked.request.form
    named = form.workers_to_delete
    reader = asked.writer.reader
    workers = await workers_of(reader, asked.namespace, asked.name) if named else {}
    return Shown(await plan_edit(asked.writer, found, changed(found, form, workers)))


async def _scale(asked: Asked) -> Shown:
    found = await _shown_before(asked, RAY_CLUSTERS)
    if not asked.request.targets:
        raise Unusable("targets: absent; allowed: GROUP=N, or GROUP=MIN..MAX")
    wanted = scaled(found, read_targets(asked.request.targets))
    return Shown(await plan_edit(asked.writer, found, wanted))


async def _suspend(asked: Asked) -> Shown:
    return Shown(await plan_suspension(asked.writer, await _free(asked, RAY_CLUSTERS)))


async def _resume(asked: Asked) -> Shown:
    return Shown(await plan_resumption(asked.writer, await _free(asked, RAY_CLUSTERS)))


async def _delete(asked: Asked) -> Shown:
    return Shown(await plan_deletion(asked.writer, await _free(asked, RAY_CLUSTERS)))


async def _submit(asked: Asked) -> Shown:
    job, writer = asked.request.job, asked.writer
    if job.cluster:
        if asked.request.like or not asked.request.form.is_empty:
            raise Unusable("cluster: one that runs; allowed: that, or a new one")
        body, waits = await on_cluster(writer.reader, asked.namespace, asked.name, job)
        plan = plan_creation(writer, RAY_JOBS, body)
        return Shown(Plan(carry_out=plan.carry_out, notes=(waits,) if waits else ()), body)
    body = new_job(asked.name, asked.namespace, job, await _cluster(asked))
    return Shown(plan_creation(writer, RAY_JOBS, body), body, foretold=True)


async def _delete_job(asked: Asked) -> Shown:
    return Shown(await plan_job_deletion(asked.writer, await _free(asked, RAY_JOBS)))


async def _create_queue(asked: Asked) -> Shown:
    body = new_queue(asked.name, asked.request.queue)
    return Shown(plan_creation(asked.writer, GANG_QUEUES, body), body)


async def _edit_queue(asked: Asked) -> Shown:
    found = await _shown_before(asked, GANG_QUEUES)
    plan, would_be = await plan_queue_edit(asked.writer, found, asked.request.queue)
    return Shown(plan, {**found, "metadata": {"name": asked.name}, "spec": would_be["spec"]})


async def _free(asked: Asked, resource: Resource) -> Json:
    """Read an object that may be changed; raises StandsInTheWay where it belongs to another."""
    found = await read_object(asked.writer.reader, resource, asked.namespace, asked.name)
    check_free(found["kind"], found["metadata"])
    return found


async def _shown_before(asked: Asked, resource: Resource) -> Json:
    """Read an object that the person saw; raises Outdated where it is another by now."""
    found = await _free(asked, resource)
    if not asked.request.state:
        raise Unusable("state: absent; allowed: that of the object as it was shown")
    if asked.request.state != state_of(found):
        raise outdated(found)
    return found


PLANS: Final[Mapping[tuple[str, str], Callable[[Asked], Awaitable[Shown]]]] = {
    ("clusters", "create"): _create,
    ("clusters", "edit"): _edit,
    ("clusters", "scale"): _scale,
    ("clusters", "suspend"): _suspend,
    ("clusters", "resume"): _resume,
    ("clusters", "delete"): _delete,
    ("jobs", "submit"): _submit,
    ("jobs", "delete"): _delete_job,
    ("queues", "create"): _create_queue,
    ("queues", "edit"): _edit_queue,
}
"""What may be asked for, by the kind of object and the verb."""
