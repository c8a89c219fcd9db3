"""Deletes a Ray cluster or a job: says what goes with it, then does it."""

from typing import Any

from cli.managing.deleting import goes_with, goes_with_job, hangs
from cli.read.ray.ray_object import list_objects, pods_of
from cli.write.managing import delete, title
from cli.write.plan import Plan
from cli.write.writer import Writer
from kube.api.resources import RAY_CLUSTERS, RAY_JOBS

Json = dict[str, Any]


async def plan_deletion(writer: Writer, read: Json) -> Plan:
    """Return how a RayCluster is deleted; `said` is what goes with it."""
    place, name = read["metadata"]["namespace"], read["metadata"]["name"]
    pods = await pods_of(writer.reader, place, name)
    jobs = await list_objects(writer.reader, RAY_JOBS, place)
    lost = tuple(goes_with(read, None if pods is None else len(pods), jobs))
    stuck = hangs(read)
    called = title("RayCluster", read["metadata"])

    async def write() -> str:
        await delete(writer, RAY_CLUSTERS, read)
        return f"{called} deleted"

    return Plan(lost, f"Delete {called}?", carry_out=write, notes=(stuck,) if stuck else ())


async def plan_job_deletion(writer: Writer, read: Json) -> Plan:
    """Return how a RayJob is deleted; `said` is what goes with it."""
    called = title("RayJob", read["metadata"])

    async def write() -> str:
        await delete(writer, RAY_JOBS, read)
        return f"{called} deleted"

    return Plan(tuple(goes_with_job(read)), f"Delete {called}?", carry_out=write)
