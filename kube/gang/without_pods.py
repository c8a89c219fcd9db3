"""Answers the GangSource questions alike for all gangs whose pods never exist in this cluster.

A gang is decided on the pods of its templates, like a RayCluster that stays held for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kube.gang.form import F, InForm
from kube.objects import names
from kube.objects.base import Labels
from kube.ray.held_start import HELD

_NO_COMPLETIONS: Mapping[str, int] = {}


def held(annotations: Labels) -> dict[str, str]:
    """Return annotations by which it is held, whatever they say."""
    return {**annotations, names.CREATE_PODS: names.CREATE_WHEN_ADMITTED, names.HELD: HELD}


@dataclass(frozen=True, slots=True)
class WithoutPods(InForm[F]):
    """A gang of which no pod is here, or ever will be."""

    edition: ClassVar = 0
    together: ClassVar = None
    takes_over: ClassVar = None
    completions: ClassVar = _NO_COMPLETIONS
    may_exceed: ClassVar = False
    resumable: ClassVar = None
    succeeded: ClassVar = None
    why_late: ClassVar = ""
    why_stopped: ClassVar = ""
    refused_pods: ClassVar = ""
    refuses_for_good: ClassVar = False
    makes_invalid_pods: ClassVar = False
    makes_no_other_head: ClassVar = False
    stops_whole: ClassVar = True
