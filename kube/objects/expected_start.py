"""The expected start of a waiting gang, as its Gang's status states it."""

from typing import Annotated

from kube.objects.base import Slim
from kube.objects.schema import Allows

BASES = ("Now", "Forward", "Rate", "Unknown")


class GangEstimate(Slim, frozen=True):
    """When a waiting gang was expected to start, as it was told at one time."""

    time: Annotated[str, Allows("When; absent where nothing tells it.", format="date-time")] = ""
    earliest: Annotated[str, Allows("If what runs ends sooner.", format="date-time")] = ""
    latest: Annotated[str, Allows("If it ends later.", format="date-time")] = ""
    as_of: Annotated[str, Allows("When it was worked out.", required=True, format="date-time")] = ""


class GangExpectedStart(GangEstimate, frozen=True):
    """When a waiting gang is expected to start, and why; `first` is what was told of it first."""

    basis: Annotated[
        str,
        Allows(
            "Now: the next cycle admits it. Forward: the rules were run forward to its start. "
            "Rate: by how fast its queue moves. Unknown: nothing tells.",
            required=True,
            enum=list(BASES),
        ),
    ] = ""
    reason: Annotated[str, Allows("Why, in one sentence.", maxLength=1024)] = ""
    moved: Annotated[
        str, Allows("Why it is later than was told at first, by more than the range.")
    ] = ""
    first: GangEstimate | None = None
