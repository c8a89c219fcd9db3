"""Reads and writes the note of a release on a pod: `muster.dev/released: UID/QUEUE`.

No template can know the uid, so a pod that has its own was released by Muster. The queue is noted
for a pod that leaves its gang: nothing else then says which quota it uses.
"""

from typing import NamedTuple

from kube.objects import names
from kube.objects.base import ObjectMeta


class ReleaseNote(NamedTuple):
    """The pod that was released, and the queue that its gang was admitted in."""

    uid: str
    queue: str = ""
    """Empty where the note is of a release before queues were noted."""

    def __str__(self) -> str:
        """Return the value of the annotation."""
        return f"{self.uid}/{self.queue}" if self.queue else self.uid


def release_note(metadata: ObjectMeta) -> ReleaseNote | None:
    """Read the note of a pod; None where there is none, or one of another pod."""
    uid, _, queue = metadata.annotations.get(names.RELEASED, "").partition("/")
    return ReleaseNote(uid, queue) if uid and uid == metadata.uid else None
