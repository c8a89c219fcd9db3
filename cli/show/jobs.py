"""Prints jobs."""

from collections.abc import Callable

from rich.console import Console

from cli.report.ray.jobs import JobReport, JobsReport
from cli.show.table import Cell, cut, line, number, rows
from cli.show.words import age, lasting
from kube.codec.fields import moment_of

_STYLES = {"SUCCEEDED": "green", "FAILED": "red", "RUNNING": "cyan"}


def table(found: JobsReport, output: str, now: float) -> Callable[[Console], None]:
    """Return what prints the jobs."""

    def printed(console: Console) -> None:
        if not found.jobs:
            where = f" in namespace {found.namespace}" if found.namespace else ""
            line(console, f"no RayJob{where}")
            return
        heads = ("JOB", "CLUSTER", "STATUS", "KUBERAY", "QUEUE", "AGE", "TOOK", "REASON", "MESSAGE")
        rows(console, heads, [_row(each, output, now) for each in found.jobs])

    return printed


def _row(job: JobReport, output: str, now: float) -> list[Cell | str]:
    return [
        f"{job.namespace}/{job.name}",
        job.cluster or "-",
        Cell(job.job or "-", _STYLES.get(job.job, "")),
        job.deployment or "-",
        job.queue or "-",
        number(age(job.created, now)),
        number(_took(job, now)),
        job.reason or "-",
        cut(job.message or (job.entrypoint if output == "wide" else ""), output),
    ]


def _took(job: JobReport, now: float) -> str:
    """Write how long it ran, or runs; a dash before it began."""
    if not job.began:
        return "-"
    until = moment_of(job.ended) if job.ended else now
    return lasting(max(int(until - moment_of(job.began)), 0))
