"""Checks whether the ResourceQuotas of a namespace lack room for a new RayCluster.

Pure. A quota that could never hold all pods of the RayCluster is left to the coordinator, which
knows the gang's minimum. A RayCluster that cannot be foreseen lacks nothing: its pods are created,
and some are refused.
"""

from collections.abc import Collection, Iterator

from kube.foreseen.admission import Admission
from kube.foreseen.gang import Foreseen, foreseen_gang
from kube.foreseen.namespace_quota import bounds_of, charges_of, counted
from kube.objects.admission import ResourceQuota, RuntimeClass
from kube.objects.core import PriorityClass
from kube.objects.pod_templates import TemplateSpec
from kube.objects.ray import RayCluster
from kube.ray.pod_templates import UnreadableTemplate, head_template, worker_template


def lacks_room(cluster: RayCluster, quotas: Collection[ResourceQuota]) -> bool:
    """Say whether the limits have room for all its pods, but not beside the present usage."""
    found = _foreseen(cluster) if quotas else None
    if found is None:
        return False
    bounds = bounds_of(quotas)
    needs = [
        (n, bounds[of]) for of, n in counted(charges_of(found), quotas).items() if of in bounds
    ]
    could_be = all(n <= bound.hard for n, bound in needs)
    return could_be and any(n > bound.hard - bound.used for n, bound in needs)


def _foreseen(cluster: RayCluster) -> Foreseen | None:
    try:
        outlook = foreseen_gang(cluster, _admission([*_specs(cluster)]))
    except UnreadableTemplate:
        return None
    return outlook if isinstance(outlook, Foreseen) else None


def _admission(specs: Collection[TemplateSpec]) -> Admission:
    """Admit pods as if the classes that they name were there and added nothing.

    LimitRanges are not read either. What they would add is counted when the pods exist.
    """
    priorities = {each.priority_class_name: each.priority or 0 for each in specs}
    runtimes = {each.runtime_class_name for each in specs if each.runtime_class_name is not None}
    return Admission(
        runtime_classes={name: RuntimeClass() for name in runtimes},
        priority_classes={name: PriorityClass(value=of) for name, of in priorities.items() if name},
    )


def _specs(cluster: RayCluster) -> Iterator[TemplateSpec]:
    groups = map(worker_template, cluster.spec.worker_group_specs)
    for each in (head_template(cluster.spec), *groups):
        if each is not None:
            yield each.template.spec
