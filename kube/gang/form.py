"""Answers the questions of GangSource that all objects in the form of a RayCluster share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from kube.objects.base import ObjectMeta
from kube.objects.ray import RayCluster
from kube.ray import held_start, ray_cluster
from kube.ray.gang_terms import PodSetTerms, ray_pod_sets

F = TypeVar("F", bound=RayCluster)


@dataclass(frozen=True, slots=True)
class InForm(Generic[F]):
    """An object under the name of its Gang, with its pod sets as worker groups."""

    form: F

    @property
    def metadata(self) -> ObjectMeta:
        """Its metadata."""
        return self.form.metadata

    @property
    def gpu_sharing(self) -> tuple[str, ...]:
        """Annotations of its pods by which other schedulers share GPUs."""
        return self.form.spec.gpu_sharing

    @property
    def is_ours(self) -> bool:
        """Whether it names no controller that Muster leaves it to."""
        return ray_cluster.is_of_kuberay(self.form)

    @property
    def suspended(self) -> bool | None:
        """What its spec says."""
        return self.form.spec.suspend

    @property
    def is_held(self) -> bool:
        """Whether it is suspended, and says that Muster did it."""
        return held_start.is_held(self.form)

    @property
    def pod_sets_wanted(self) -> tuple[PodSetTerms, ...]:
        """Those of its spec."""
        return self.sets(self.form, {})

    @staticmethod
    def sets(form: RayCluster, minimums: Mapping[str, int]) -> tuple[PodSetTerms, ...]:
        """Return the head and its worker groups, which some kinds have not."""
        return ray_pod_sets(form, minimums)

    def replaces(self, pod_set: str) -> bool:  # noqa: ARG002 - of every set
        """KubeRay makes every pod again."""
        return True

    @property
    def templates(self) -> object:
        """Its spec, suspended or not."""
        return ray_cluster.resumed(self.form).spec
