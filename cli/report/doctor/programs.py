"""The checks of `muster doctor` for KubeRay and the programs of Muster."""

from collections.abc import Iterable, Iterator
from typing import Final

from cli.report.doctor.examined import Deployment, Examined
from cli.report.doctor.findings import Finding, fail, ok, unread, warn
from cli.report.doctor.installation import (
    APPLY,
    CERTS,
    WEBHOOKS,
    is_certified_by_others,
    is_gated_by_policy,
    is_testbed,
    named,
)
from cli.report.snapshot import Unread

COORDINATOR: Final = "muster-coordinator"
KUBERAY_OPERATOR: Final = "kuberay-operator"
"""The Deployment of KubeRay, as its own manifests and its chart call it."""

INSTALL_KUBERAY: Final = (
    'kubectl create -k "github.com/ray-project/kuberay/ray-operator/config/default?ref=v1.6.2"'
)
_BATCH_SCHEDULER: Final = "--batch-scheduler=volcano"


def check_kuberay(seen: Examined) -> Iterator[Finding]:
    """Say whether KubeRay is there, in a version that Muster reads."""
    check = "KubeRay"
    found = named(seen.definitions, "rayclusters.ray.io")
    if isinstance(found, Unread):
        yield unread(check, found)
    elif found is None:
        yield fail(check, "there is no definition rayclusters.ray.io", INSTALL_KUBERAY)
    elif not any(each.served and each.name == "v1" for each in found.spec.versions):
        yield fail(check, "rayclusters.ray.io does not serve v1", "install KubeRay 1.4 or newer")
    else:
        yield _operator(check, seen)


def _operator(check: str, seen: Examined) -> Finding:
    """Say whether KubeRay's operator runs, and leaves the pods to kube-scheduler."""
    found = () if isinstance(seen.deployments, Unread) else seen.deployments
    mine = next((each for each in found if each.metadata.name == KUBERAY_OPERATOR), None)
    # One that is installed under another name is not known here.
    if mine is None:
        return ok(check, "rayclusters.ray.io serves v1")
    name = f"{mine.metadata.namespace}/{KUBERAY_OPERATOR}"
    if not mine.status.available_replicas and mine.spec.replicas != 0:
        remedy = f"kubectl -n {mine.metadata.namespace} describe deployment {KUBERAY_OPERATOR}"
        return fail(check, f"no pod of its operator {name} is available", remedy)
    if any(_BATCH_SCHEDULER in each for each in mine.arguments):
        said = f"{name} has {_BATCH_SCHEDULER}: it sets schedulerName, which Muster does not serve"
        return warn(check, said, "take the flag off; docs/importing.md says how to move over")
    return ok(check, "rayclusters.ray.io serves v1")


def check_programs(seen: Examined) -> Iterator[Finding]:
    """Say whether Muster's programs run, all of one release."""
    if is_testbed(seen):
        yield ok("programs", "processes beside the API server, as on a testbed: no Deployments")
        return
    if isinstance(seen.deployments, Unread):
        yield unread("programs", seen.deployments)
        return
    mine = {
        each.metadata.name: each
        for each in seen.deployments
        if each.metadata.namespace == seen.namespace
    }
    for name in _needed(seen):
        yield _program(name, mine.get(name), seen.namespace)
    yield from _releases(mine.values(), seen.release)


def _needed(seen: Examined) -> Iterator[str]:
    """Name the programs of this installation, beside which there may be others."""
    yield COORDINATOR
    if is_gated_by_policy(seen):
        return
    yield WEBHOOKS
    if not is_certified_by_others(seen):
        yield CERTS


def _program(name: str, found: Deployment | None, namespace: str) -> Finding:
    if found is None:
        return fail(name, f"there is no Deployment {namespace}/{name}", APPLY)
    wanted = 1 if found.spec.replicas is None else found.spec.replicas
    available, said = found.status.available_replicas, f"of {wanted} pods are available"
    remedy = f"kubectl -n {namespace} describe pods -l app.kubernetes.io/name={name}"
    if not available:
        return fail(name, f"0 {said}", remedy)
    if available < wanted:
        return warn(name, f"{available} {said}", remedy)
    return ok(name, f"{available} {said}")


def _releases(found: Iterable[Deployment], release: str) -> Iterator[Finding]:
    """Say whether the programs are of one image, and this command of the same release."""
    mine = [each for each in found if each.metadata.name.startswith("muster-")]
    images = sorted({image for each in mine for image in each.images})
    tags = {image.rpartition(":")[2].removeprefix("v") for image in images}
    if len(images) > 1:
        said = f"the programs are of {len(images)} images: {', '.join(images)}"
        yield warn("release", said, "give all of them one image and tag in the overlay")
    elif any(tag[:1].isdigit() and tag != release for tag in tags):
        said = f"the programs are of {images[0]}, and this command is of {release}"
        yield warn("release", said, "install the command of the release that runs")
    elif images:
        yield ok("release", f"{images[0]}; this command is of {release}")
