"""Builds the objects to create from the items of an AppWrapper, and labels their pods.

An object is created as written, with a namespace if it has none, the AppWrapper as its owner, and
labels. A label that the item already has stays as it is; it cannot have labels of Muster.
"""

from collections.abc import Mapping
from typing import Any

from appwrapper.spec.paths import Json, at, changed
from appwrapper.spec.wrapped import Generation, Item
from kube.objects import names
from kube.objects.base import ObjectMeta
from kube.ray.wrapped_by import labels_of_group

_LONGEST_LABEL = 63


def created_object(item: Item, meta: ObjectMeta, api_version: str, generation: Generation) -> Json:
    """Return the object that is created for an item of the AppWrapper of this name and uid.

    `api_version` is the one in which the AppWrapper is known, for the reference to it.
    """
    added = labels_of(meta, api_version, generation)
    found = _with_metadata(item.found, meta, api_version, _of_object(item, added, generation))
    for each in item.pod_sets:
        if each.path is not None:
            template = at(found, each.path)
            labels = {**added, names.POD_SET: each.name}
            found = changed(found, each.path, _labelled(template, labels))
    return found


def labels_of(meta: ObjectMeta, api_version: str, generation: Generation) -> dict[str, str]:
    """Return the labels of all objects and pods of an AppWrapper, ours and its generation's."""
    theirs = names.MCAD_LABEL if generation is Generation.MCAD else names.CODEFLARE_LABEL
    own = {names.APP_WRAPPER: meta.name, names.APP_WRAPPER_UID: meta.uid}
    return {**own, **labels_of_group(api_version), theirs: meta.name}


def _of_object(item: Item, added: dict[str, str], generation: Generation) -> dict[str, str]:
    """Add the label by which MCAD finds the object of an item, where the name fits a label."""
    if generation is Generation.MCAD and len(item.name) <= _LONGEST_LABEL:
        return {**added, names.MCAD_ITEM_LABEL: item.name}
    return added


def _with_metadata(
    found: Json, meta: ObjectMeta, api_version: str, labels: Mapping[str, str]
) -> Json:
    owner = {
        "apiVersion": api_version,
        "kind": names.APP_WRAPPER_KIND,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    labelled = _labelled(found, labels)
    metadata = {"namespace": meta.namespace, **labelled["metadata"], "ownerReferences": [owner]}
    metadata["namespace"] = metadata["namespace"] or meta.namespace
    return {**labelled, "metadata": metadata}


def _labelled(found: Json, added: Mapping[str, str]) -> Json:
    """Return an object or a template with labels beside those it has."""
    metadata = _map(found.get("metadata"))
    labels = {**added, **_map(metadata.get("labels"))}
    return {**found, "metadata": {**metadata, "labels": labels}}


def _map(found: Any) -> Json:
    return found if isinstance(found, dict) else {}
