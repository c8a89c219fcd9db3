"""Reads jobs with the gangs of the Ray clusters that they run on."""

from cli.endings import Absent, CannotRead, NotAllowed
from cli.read.reader import Reader
from cli.report.ray.jobs import Job, JobsReport, jobs_report
from kube.api import resources
from kube.objects.gang import Gang


async def read_jobs(reader: Reader, namespace: str, *, everywhere: bool) -> JobsReport:
    """Read the jobs of a namespace, or of all; where that is not allowed, of the context's."""
    place = "" if everywhere else namespace
    unread: list[str] = []
    if not namespace and not everywhere:
        try:
            return await _read(reader, "", unread)
        except NotAllowed as refusal:
            place = reader.namespace
            unread.append(f"{refusal}; only jobs of namespace {place} are shown")
    return await _read(reader, place, unread)


async def _read(reader: Reader, namespace: str, unread: list[str]) -> JobsReport:
    jobs = await reader.list(resources.RAY_JOBS, Job, namespace=namespace)
    try:
        gangs = await reader.list(resources.GANGS, Gang, namespace=namespace)
    except CannotRead as fault:
        gangs, unread = (), [*unread, f"{fault}: why jobs wait is not known"]
    return jobs_report(jobs, gangs, namespace, (*unread, *reader.faults))


async def read_job(reader: Reader, namespace: str, name: str) -> Job:
    """Read one job; raises Absent where there is none of that name."""
    found = await reader.get(resources.RAY_JOBS, Job, name, namespace)
    if found is None:
        raise Absent(f"no RayJob {name} in namespace {namespace}")
    return found
