"""Answers the questions of GangSource for an AppWrapper that another cluster runs.

The webhook notes that on it at its creation. Nothing of it is created here: its gang takes quota
for the amounts of its templates, and its phase is that of its copy.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from appwrapper.gang.pod_sets import foreseen_pods, pod_sets
from appwrapper.gang.rising import added_priority, rises_every
from appwrapper.gang.stand_in import StandIn
from appwrapper.gang.unseen import problems
from appwrapper.gang.watched import AppWrapperReading
from appwrapper.phases import Phase
from kube.foreseen.admission import Admission
from kube.foreseen.gang import Outlook
from kube.gang.dispatched import DispatchedForm, DispatchedSource
from kube.gang.sent import APP_WRAPPER, is_noted, kind_of
from kube.gang.source import Hindrance
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper, AppWrapperStatus
from kube.objects.ray import RayCluster
from kube.ray.gang_terms import PodSetTerms
from kube.ray.pod_templates import with_amounts_alone
from scheduling.model.verdict import Reason


class SentWrapper(DispatchedForm, frozen=True):
    """An AppWrapper that another cluster runs, in the form of what stands in for it."""


class SendingReading:
    """Reduces what a watch tells of AppWrappers on a cluster that sends gangs to others."""

    def __init__(self) -> None:
        self._read = AppWrapperReading()

    def __call__(self, wrapper: AppWrapper) -> StandIn | SentWrapper:
        """Return what is kept of an AppWrapper, under its own name: a watch finds it by that."""
        meta = wrapper.metadata
        if not is_noted(meta.annotations):
            return self._read(wrapper)
        others = {key: said for key, said in meta.annotations.items() if key != names.DISPATCHED}
        queued = replace(
            wrapper, metadata=replace(meta, annotations=others), status=AppWrapperStatus()
        )
        return _sent(self._read(queued), wrapper.status.phase)


def _sent(found: StandIn, phase: str) -> SentWrapper:
    return SentWrapper(
        metadata=found.metadata,
        spec=with_amounts_alone(replace(found.spec, suspend=True)),
        kind=kind_of(found.api_version, APP_WRAPPER),
        stopped=found.stopped_by_user,
        ended=phase if phase in (Phase.SUCCEEDED, Phase.FAILED) else "",
        problems=problems(found),
        fault=found.refused or found.unforeseeable,
        priority=found.priority,
        priority_slope=found.priority_slope,
    )


@dataclass(frozen=True, slots=True)
class SentWrapperSource(DispatchedSource):
    """A gang that runs on another cluster, of which nothing exists here."""

    form: SentWrapper

    no_pods: ClassVar = Hindrance(
        Reason.NOT_REQUIRED, "no wrapped object has pods: it is sent nowhere"
    )
    end_reason: ClassVar = Reason.WRAPPER_ENDED

    @staticmethod
    def sets(form: RayCluster, minimums: Mapping[str, int]) -> tuple[PodSetTerms, ...]:
        """Return the pod sets of its items."""
        return pod_sets(form, minimums)

    def pods(self, admission: Admission) -> Outlook:
        """Work out its pods as they are created for its items."""
        return foreseen_pods(StandIn(self.form.metadata, self.form.spec), admission)

    def added_priority(self, now: float) -> int:
        """Return its priority with what its slope has added since it was created."""
        return added_priority(self.form, now)

    @property
    def rises_every(self) -> float:
        """A minute, unless its slope is flat."""
        return rises_every(self.form)
