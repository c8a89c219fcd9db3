"""Reads the settings of the coordinator that verdicts depend on, off its Deployment."""

from typing import Final

from pydantic import ValidationError

from cli.endings import CannotRead
from cli.read.home import COORDINATOR, DEPLOYMENTS, home_by_binding
from cli.read.reader import Reader
from coordinator.settings import PREFIX, Settings
from kube.objects.base import OrNull, Part, Slim
from kube.objects.names import DEFAULT_NAMESPACE

DECIDING: Final = (
    "priority_classes",
    "app_wrapper_priorities",
    "profiles",
    "waiting_per_namespace",
    "app_wrappers",
)
"""The settings that a verdict depends on."""


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


async def read_settings(reader: Reader) -> tuple[Settings, str]:
    """Return the settings, and what to say where they are not known: then they are the defaults."""
    home = await home_by_binding(reader) or DEFAULT_NAMESPACE
    defaults = Settings(namespace=home)
    try:
        found = await reader.get(DEPLOYMENTS, Deployment, COORDINATOR, home)
    except CannotRead as refusal:
        return defaults, f"{refusal}: the settings of the coordinator are taken for its defaults"
    if found is None:
        missing = f"there is no Deployment {home}/{COORDINATOR}"
        return defaults, f"{missing}: the settings of the coordinator are taken for its defaults"
    try:
        return Settings.model_validate({**_said(found), "namespace": home}), ""
    except ValidationError as fault:
        said = " ".join(str(fault).split())[:200]
        return defaults, f"the settings of Deployment {COORDINATOR} cannot be used: {said}"


def _said(found: Deployment) -> dict[str, str]:
    variables = (
        each for container in found.spec.template.spec.containers for each in container.env
    )
    said = {each.name.removeprefix(PREFIX).lower(): each.value for each in variables}
    return {name: value for name, value in said.items() if name in DECIDING and value is not None}
