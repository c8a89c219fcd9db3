"""The role for `muster fit` lists what it reads, and nothing else."""

import yaml

from kube.api.resources import Resource
from tests.cli.fitting.reader import MemoryReader, T, answers, fit
from tests.coordinator.builders import group, node, ray_cluster
from tests.coordinator.device_world import asking
from tests.coordinator.world import World
from tests.packaging.tree import ROOT

FOLDER = ROOT / "manifests" / "fit"


class Recording(MemoryReader):
    """Notes what is asked for."""

    def __init__(self, world: World) -> None:
        super().__init__(world.api.all)
        self.asked: set[tuple[str, str, str]] = set()

    async def list(self, resource: Resource, as_: type[T], **how: str) -> tuple[T, ...]:
        self.asked.add((resource.group, resource.plural, "list"))
        return await super().list(resource, as_, **how)

    async def get(
        self, resource: Resource, as_: type[T], name: str, namespace: str = ""
    ) -> T | None:
        self.asked.add((resource.group, f"{resource.plural}/{name}", "get"))
        return await super().get(resource, as_, name, namespace)


def test_the_role_grants_what_is_read_and_no_more() -> None:
    (role,) = yaml.safe_load_all((FOLDER / "rbac.yaml").read_text())
    assert (role["kind"], role["metadata"]["name"]) == ("ClusterRole", "muster-fit")
    granted = {
        (api_group, "/".join([resource, *rule.get("resourceNames", [])]), verb)
        for rule in role["rules"]
        for api_group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    mounted = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    reader = Recording(World(node("a")))
    workers = group("w", 1, volumes=mounted, **asking("one"))
    assert answers(fit(reader, ray_cluster("train", workers)))
    assert reader.asked == granted


def test_the_component_binds_the_role_to_nothing() -> None:
    (found,) = yaml.safe_load_all((FOLDER / "kustomization.yaml").read_text())
    assert (found["kind"], found["resources"]) == ("Component", ["rbac.yaml"])
    assert {path.name for path in FOLDER.iterdir()} == {"kustomization.yaml", "rbac.yaml"}
