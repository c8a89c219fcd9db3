"""Reads the settings of the coordinator that verdicts depend on, off its Deployment."""

from cli.endings import CannotRead
from cli.read.home import DEPLOYMENTS, home_by_binding
from cli.read.reader import Reader
from coordinator.deployed import DEFAULTS, Deployment, settings_of
from coordinator.settings import Settings
from kube.objects.names import COORDINATOR, DEFAULT_NAMESPACE


async def read_settings(reader: Reader) -> tuple[Settings, str]:
    """Return the settings, and what to say where they are not known: then they are the defaults."""
    home = await home_by_binding(reader) or DEFAULT_NAMESPACE
    try:
        return settings_of(await reader.get(DEPLOYMENTS, Deployment, COORDINATOR, home), home)
    except CannotRead as refusal:
        return Settings(namespace=home), f"{refusal}: {DEFAULTS}"
