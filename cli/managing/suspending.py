"""Suspends and resumes RayClusters, those that Muster holds included."""

from collections.abc import Mapping
from typing import Any, Final

from cli.endings import StandsInTheWay
from kube.objects import names
from kube.ray.held_start import HELD

Json = dict[str, Any]

_HELD_PHASES: Final = ("Waiting", "Suspending")


def is_held(cluster: Mapping[str, Any], held_phase: str) -> bool:
    """Say whether Muster suspended a RayCluster, by what its Gang or its own note says."""
    noted = (cluster["metadata"].get("annotations") or {}).get(names.HELD) == HELD
    return bool(cluster["spec"].get("suspend")) and (noted or held_phase in _HELD_PHASES)


def suspension(cluster: Mapping[str, Any], held_phase: str) -> Json:
    """Return the merge patch that suspends a RayCluster; empty where it is suspended already.

    Raises StandsInTheWay where Muster holds it: it would be resumed all the same.
    """
    if is_held(cluster, held_phase):
        place = f"{cluster['metadata'].get('namespace')}/{cluster['metadata']['name']}"
        raise StandsInTheWay(
            f"RayCluster {place} has no pods: Muster holds it, and resumes it once its gang is "
            f"admitted. To keep it from that: muster delete {place}; or opt it out (muster "
            f"release {place}), and suspend it then"
        )
    return {} if cluster["spec"].get("suspend") else {"spec": {"suspend": True}}


def resumption(cluster: Mapping[str, Any]) -> Json:
    """Return the merge patch that resumes a RayCluster; empty where it is not suspended.

    An explicit false wakes one that KubeRay suspended, and takes Muster's note away.
    """
    if not cluster["spec"].get("suspend"):
        return {}
    noted = names.HELD in (cluster["metadata"].get("annotations") or {})
    metadata = {"metadata": {"annotations": {names.HELD: None}}} if noted else {}
    return {"spec": {"suspend": False}, **metadata}
