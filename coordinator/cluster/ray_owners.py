"""Keeps observed RayJobs and RayServices, and the RayClusters that each of them made."""

from collections import defaultdict
from collections.abc import Set

from msgspec.structs import replace

from kube.codec.fields import created_at
from kube.gang.source import GangSource
from kube.objects.ray import RayJob, RayOwner
from kube.ray.ray_cluster import is_terminating
from kube.ray.ray_owner import controller_of, is_suspended_by_muster, is_the, named_clusters
from scheduling.model.gang import GangKey


class RayOwners:
    """The owners by uid. Where the server knows no such objects there are none."""

    def __init__(self) -> None:
        self._owners: dict[str, RayOwner] = {}
        self._named: dict[tuple[str, str, str], str] = {}
        """Their uids by kind, namespace and name."""
        self._clusters: defaultdict[str, set[GangKey]] = defaultdict(set)
        self.suspended: dict[str, RayJob] = {}
        """The RayJobs by uid that carry the note that Muster suspended them."""

    def put(self, owner: RayOwner) -> bool:
        """Take in an owner; say whether anything changed that is read of it."""
        before = self._owners.get(owner.metadata.uid)
        self._owners[owner.metadata.uid] = owner
        self._named[_name_of(owner)] = owner.metadata.uid
        self._note_suspension(owner)
        return before is None or _read_of(before) != _read_of(owner)

    def drop(self, uid: str) -> None:
        """Forget an owner."""
        gone = self._owners.pop(uid, None)
        if gone is not None and self._named.get(_name_of(gone)) == uid:
            del self._named[_name_of(gone)]
        self.suspended.pop(uid, None)

    def _note_suspension(self, owner: RayOwner) -> None:
        if isinstance(owner, RayJob) and is_suspended_by_muster(owner):
            self.suspended[owner.metadata.uid] = owner
        else:
            self.suspended.pop(owner.metadata.uid, None)

    def __contains__(self, uid: str) -> bool:
        """Say whether an owner is there, and is not being deleted."""
        owner = self._owners.get(uid)
        return owner is not None and not is_terminating(owner.metadata)

    def get(self, uid: str) -> RayOwner | None:
        """Return the owner with a uid."""
        return self._owners.get(uid)

    def named(self, kind: str, namespace: str, name: str) -> RayOwner | None:
        """Return the owner of a name."""
        return self._owners.get(self._named.get((kind, namespace, name), ""))

    def adopt(self, key: GangKey, source: GangSource) -> None:
        """Note which owner made a RayCluster."""
        reference = controller_of(source.metadata)
        if reference is not None:
            self._clusters[reference.uid].add(key)

    def orphan(self, key: GangKey, source: GangSource) -> None:
        """Forget a RayCluster that is gone, or another one by now."""
        reference = controller_of(source.metadata)
        if reference is not None and reference.uid in self._clusters:
            self._clusters[reference.uid].discard(key)
            if not self._clusters[reference.uid]:
                del self._clusters[reference.uid]

    def clusters_of(self, uid: str) -> Set[GangKey]:
        """Return the RayClusters that an owner made."""
        return self._clusters.get(uid, frozenset())

    def owner_of(self, source: GangSource) -> RayOwner | None:
        """Return the owner of a RayCluster; None where it has none, or none is known."""
        reference = controller_of(source.metadata)
        owner = self._owners.get(reference.uid) if reference is not None else None
        if reference is None or owner is None or not is_the(owner, reference):
            return None
        return owner if owner.metadata.namespace == source.metadata.namespace else None

    def arrived_at(self, source: GangSource) -> float:
        """Return when a gang began to wait: its owner makes it anew for each try or version.

        An owner that does not name the RayCluster lends it no age: anyone can refer to an owner.
        """
        owner = self.maker_of(source)
        return created_at(owner.metadata if owner is not None else source.metadata)

    def maker_of(self, source: GangSource) -> RayOwner | None:
        """Return the owner of a RayCluster that itself calls it its own."""
        owner = self.owner_of(source)
        own = owner is not None and source.metadata.name in named_clusters(owner)
        return owner if own else None

    def is_disowned(self, source: GangSource) -> bool:
        """Say whether the owner referred to names another RayCluster, which is there.

        Where that is gone, what is known of the owner may be old.
        """
        owner, meta = self.owner_of(source), source.metadata
        named = named_clusters(owner) if owner is not None else set()
        if owner is None or meta.name in named:
            return False
        made = self.clusters_of(owner.metadata.uid)
        return any(GangKey(meta.namespace, each) in made for each in named)


def _name_of(owner: RayOwner) -> tuple[str, str, str]:
    return type(owner).__name__, owner.metadata.namespace, owner.metadata.name


def _read_of(owner: RayOwner) -> RayOwner:
    return replace(owner, metadata=replace(owner.metadata, resource_version=""))
