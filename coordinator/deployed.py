"""Reads off the coordinator's Deployment how it decides, for what asks what it would decide."""

from typing import Final

from pydantic import ValidationError

from coordinator.cluster.cache import ClusterCache
from coordinator.gang.priority import AllowedClasses
from coordinator.queues.waiting_limit import WaitingLimit
from coordinator.settings import PREFIX, Settings
from coordinator.state.known import Known
from coordinator.state_machine import CoordinatorState
from kube.codec.profiles.written_profiles import profiles_of
from kube.objects.base import OrNull, Part, Slim
from kube.objects.names import COORDINATOR
from runtime.program import faults_of

DECIDING: Final = (
    "priority_classes",
    "app_wrapper_priorities",
    "profiles",
    "waiting_per_namespace",
    "app_wrappers",
    "feature_gates_off",
)
"""The settings that a verdict depends on."""

DEFAULTS: Final = "the settings of the coordinator are taken for its defaults"


class _Variable(Slim, frozen=True):
    name: str = ""
    value: str | None = None


class _Container(Part, frozen=True):
    name: str = ""
    env: OrNull[tuple[_Variable, ...]] = ()


class _PodSpec(Part, frozen=True):
    containers: OrNull[tuple[_Container, ...]] = ()


class _Template(Slim, frozen=True):
    spec: _PodSpec = _PodSpec()


class _DeploymentSpec(Slim, frozen=True):
    template: _Template = _Template()


class Deployment(Slim, frozen=True):
    """What of a Deployment says how its program is set."""

    spec: _DeploymentSpec = _DeploymentSpec()


def settings_of(found: Deployment | None, home: str) -> tuple[Settings, str]:
    """Return the settings, and what to say where they are not known: then they are the defaults."""
    defaults = Settings(namespace=home)
    if found is None:
        missing = f"there is no Deployment {home}/{COORDINATOR}"
        return defaults, f"{missing}: {DEFAULTS}"
    try:
        return Settings.model_validate({**_said(found), "namespace": home}), ""
    except ValidationError as fault:
        said = "; ".join(faults_of(fault, Settings, PREFIX))[:400]
        return defaults, f"the settings of Deployment {COORDINATOR} cannot be used: {said}"


def state_of(settings: Settings) -> CoordinatorState:
    """Return the state of a coordinator that was just started with these settings."""
    known = Known(
        allowed=AllowedClasses(settings.priority_classes, settings.app_wrapper_priorities),
        cache=ClusterCache(settings.namespace, gates_off=settings.feature_gates_off),
        waiting_limit=WaitingLimit(settings.waiting_per_namespace),
        profiles=profiles_of(settings.profiles),
    )
    return CoordinatorState(known)


def _said(found: Deployment) -> dict[str, str]:
    variables = (
        each for container in found.spec.template.spec.containers for each in container.env
    )
    said = {each.name.removeprefix(PREFIX).lower(): each.value for each in variables}
    return {name: value for name, value in said.items() if name in DECIDING and value is not None}
