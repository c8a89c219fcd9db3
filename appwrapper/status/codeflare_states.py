"""Words the conditions of an AppWrapper as CodeFlare's controller does."""

from appwrapper.phases import Phase
from appwrapper.status.conditions import Conditions, cleared, with_condition
from appwrapper.status.told import PodCounts, Step, Told
from kube.objects.app_wrapper import AppWrapperCondition

_QUOTA, _DEPLOYED, _READY = "QuotaReserved", "ResourcesDeployed", "PodsReady"
_UNHEALTHY, _DELETING = "Unhealthy", "DeletingResources"
_UNSUSPENDED, _SUSPENDED = "Suspend is false", "Suspend is true"


def codeflare_conditions(told: Told, known: Conditions) -> Conditions:
    """Return the conditions that CodeFlare's controller would have written by now."""
    now = _Now(told, known)
    match told.phase:
        case Phase.RESUMING:
            now.holds(_QUOTA, told.phase, _UNSUSPENDED)
            now.holds(_DEPLOYED, told.phase, _UNSUSPENDED)
            now.lacks(_READY, told.phase, _UNSUSPENDED)
            now.lacks(_UNHEALTHY, told.phase, _UNSUSPENDED)
        case Phase.RUNNING:
            _running(now)
        case Phase.SUSPENDING | Phase.RESETTING:
            _stopping(now)
        case Phase.SUSPENDED:
            _suspended(now)
        case Phase.SUCCEEDED:
            said = f"{told.pods.succeeded} pods succeeded and no running, pending, or failed pods"
            now.lacks(_QUOTA, told.phase, said)
            now.holds(_DEPLOYED, told.phase, said)
        case Phase.FAILED:
            _failed(now)
        case Phase.TERMINATING:
            now.clear(_DEPLOYED, told.phase, "Resources successfully deleted")
            now.clear(_QUOTA, told.phase, "No resources deployed")
    return now.known


class _Now:
    """The conditions as they become, at one moment."""

    def __init__(self, told: Told, known: Conditions) -> None:
        self.told, self.known = told, known

    def holds(self, kind: str, reason: str, message: str) -> None:
        """Set a condition to True."""
        self._set(kind, "True", reason, message)

    def lacks(self, kind: str, reason: str, message: str) -> None:
        """Set a condition to False."""
        self._set(kind, "False", reason, message)

    def _set(self, kind: str, status: str, reason: str, message: str) -> None:
        new = AppWrapperCondition(type=kind, status=status, reason=str(reason), message=message)
        self.known = with_condition(self.known, new, self.told.moment)

    def clear(self, kind: str, reason: str, message: str = "") -> None:
        """Set a condition to False where it is True."""
        self.known = cleared(self.known, kind, str(reason), message, self.told.moment)


def _running(now: _Now) -> None:
    pods = now.told.pods
    if now.told.step is Step.BROKEN:
        now.holds(_UNHEALTHY, "FailedComponent", now.told.detail)
        return
    if pods.failed:
        now.holds(_UNHEALTHY, "FoundFailedPods", "")
        return
    now.clear(_UNHEALTHY, "FoundNoFailedPods")
    if pods.suffice:
        said = f"{pods.running} pods running; {pods.succeeded} pods succeeded"
        now.holds(_READY, "SufficientPodsReady", said)
        return
    now.lacks(_READY, "InsufficientPodsReady", _counts(pods))


def _stopping(now: _Now) -> None:
    told = now.told
    if told.phase is Phase.RESETTING:
        why = _unhealthy(told)
        now.holds(_UNHEALTHY, *why)
    now.clear(_READY, told.phase)
    now.holds(_DELETING, "DeletionInitiated", "")


def _unhealthy(told: Told) -> tuple[str, str]:
    """Return reason and message of why an AppWrapper is started again, or failed."""
    if told.step is Step.NOT_CREATED:
        return "CreateFailed", f"error creating components: {told.detail}"
    if told.step is Step.BROKEN:
        return "FailedComponent", told.detail
    if told.step is Step.FAILED_PODS or told.pods.failed:
        return "FoundFailedPods", ""
    if told.step in (Step.TOO_FEW, Step.UNSCHEDULABLE, Step.GIVEN_UP):
        return "InsufficientPodsReady", _counts(told.pods)
    return told.reason or str(told.step), told.message


def _suspended(now: _Now) -> None:
    """Tell of an AppWrapper that waits: in CodeFlare's words what it is not, in ours why."""
    told = now.told
    said = _SUSPENDED if told.step is Step.SUSPENDED else told.message
    now.clear(_DELETING, "DeletionComplete")
    now.clear(_DEPLOYED, told.phase, said)
    now.lacks(_QUOTA, told.phase, said)
    now.clear(_READY, told.phase)
    now.clear(_UNHEALTHY, told.phase)


def _failed(now: _Now) -> None:
    now.holds(_UNHEALTHY, *_unhealthy(now.told))
    now.clear(_READY, now.told.phase)
    now.clear(_DEPLOYED, now.told.phase, "Resources deleted for failed AppWrapper")
    now.lacks(_QUOTA, now.told.phase, "No resources deployed")


def _counts(pods: PodCounts) -> str:
    return (
        f"{pods.pending} pods pending; {pods.running} pods running; {pods.succeeded} pods succeeded"
    )
