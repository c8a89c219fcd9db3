"""Lists the systems whose queues can be imported: their API group and kinds."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class System:
    """A system; `module` has the function `read`, `kinds` gives the plural of each kind."""

    module: str
    title: str
    group: str
    kinds: Mapping[str, str]

    @property
    def plurals(self) -> str:
        """The kinds as kubectl takes them."""
        return ",".join(f"{plural}.{self.group}" for plural in self.kinds.values())


MCAD = System("cli.imports.mcad", "MCAD", "quota.codeflare.dev", {"QuotaSubtree": "quotasubtrees"})
KUEUE = System(
    "cli.imports.kueue",
    "Kueue",
    "kueue.x-k8s.io",
    {
        "ClusterQueue": "clusterqueues",
        "Cohort": "cohorts",
        "LocalQueue": "localqueues",
        "ResourceFlavor": "resourceflavors",
        "WorkloadPriorityClass": "workloadpriorityclasses",
    },
)
VOLCANO = System(
    "cli.imports.volcano",
    "Volcano",
    "scheduling.volcano.sh",
    {"Queue": "queues", "PodGroup": "podgroups"},
)
SYSTEMS = {"mcad": MCAD, "kueue": KUEUE, "volcano": VOLCANO}
