"""Decodes the objects of dynamic resource allocation, whose spec and status stay plain JSON.

What is not known in them has to be named, and never passed over: a struct would drop it.
"""

from typing import Any

from kube.objects.base import ObjectMeta, Slim


class DeviceObject(Slim, frozen=True):
    """A ResourceSlice, DeviceClass, ResourceClaim, ResourceClaimTemplate or DeviceTaintRule."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Any = None
    status: Any = None
