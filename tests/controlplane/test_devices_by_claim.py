"""Gangs whose pods ask for devices by claim wait for their claims, and say for which.

kube-controller-manager makes the claims from templates.
"""

from tests.controlplane.claimed_devices import add_template, asking, request
from tests.controlplane.plot import Plot, is_held
from tests.controlplane.rayclusters import Json, gang, group


def workers(count: int, *templates: str) -> Json:
    return group(replicas=count, **asking(*templates or ("one",)))


def test_a_gang_waits_for_its_claims_and_says_for_which(plot: Plot) -> None:
    """Once they are made it says that devices by claim are not decided."""
    plot.add_node(16)
    plot.create(gang("early", workers(2)))
    status = plot.wait_message("early", "ResourceClaimTemplate one does not exist")
    assert (status["phase"], status["reason"]) == ("Gathering", "GangIncomplete")
    add_template(plot, "one", request(f"{plot.name}-gpu"))
    plot.wait_phase("early", "Queued", "Unsupported", "resourceClaims (ask for")
    assert all(is_held(pod) for pod in plot.pods("early"))
