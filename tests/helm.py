"""The real helm, built by the testbed when a test first asks for it, and the chart."""

import subprocess
from collections.abc import Mapping
from typing import Any

from charts.builds import Key, key
from charts.files import CHART
from charts.worlds import World
from charts.writing import documents
from testbed.build import build
from testbed.recipes import HELM

Json = dict[str, Any]

ON: Mapping[str, str] = {
    "extender": "extender.enabled=true",
    "scheduler": "scheduler.enabled=true",
    "app-wrapper": "appWrappers.enabled=true",
    "wrapped-secrets": "appWrappers.secrets=true",
    "dashboard": "dashboard.enabled=true",
    "viewer": "roles.viewer=true",
    "fit": "roles.fit=true",
    "roles": "roles.people=true",
    "volcano-labels": "volcanoLabels.enabled=true",
    "monitoring": "monitoring.enabled=true",
    "redis": "redis.enabled=true",
    "forecaster": "forecaster.enabled=true",
    "member": "member.enabled=true",
    "dispatcher": "dispatcher.enabled=true",
    "provisioning": "provisioning.enabled=true",
    "node-name": "nodeNamePolicy.enabled=true",
    "network-policies": "networkPolicies.enabled=true",
    "cert-manager": "certificates=CertManager",
    "mutating-admission-policy": "gating=MutatingAdmissionPolicy",
    "ha": "highAvailability=true",
}
"""The value that switches each switch on."""


def helm(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [str(build([HELM], print).program("helm")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def rendered(
    *values: str, as_json: tuple[str, ...] = (), namespace: str = "muster-system"
) -> dict[Key, Json]:
    """The objects of the chart with these values, the image's tag as in the overlays."""
    told = [part for each in ("image.tag=dev", *values) for part in ("--set", each)]
    told += [part for each in as_json for part in ("--set-json", each)]
    done = helm("template", "muster", str(CHART), "--namespace", namespace, *told)
    assert done.returncode == 0, done.stderr
    return {key(each): each for each in documents(done.stdout)}


def refused(*values: str) -> str:
    """What Helm says against these values."""
    told = [part for each in values for part in ("--set", each)]
    done = helm("template", "muster", str(CHART), *told)
    assert done.returncode != 0, done.stdout
    return done.stderr


def switched(world: World) -> list[str]:
    """The values of a world."""
    return [ON[each] for each in sorted(world)]
