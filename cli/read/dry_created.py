"""Classifies what the API server answers to a dry-run create."""

from dataclasses import dataclass
from enum import Enum, auto

from kube.api.errors import ApiError, Conflict, Forbidden, KubeError, NotFound, is_of_role

_JUDGED = (400, 403, 422)
_NO_DRY_RUN = "does not support dry run"
_OVER_QUOTA = "exceeded quota"


class Answer(Enum):
    """What became of it. NOT_ASKED: the API server did not judge it; NO_RIGHT: nor may it."""

    TAKEN = auto()
    REFUSED = auto()
    OVER_QUOTA = auto()
    EXISTS = auto()
    NO_RIGHT = auto()
    NOT_ASKED = auto()


@dataclass(frozen=True, slots=True)
class DryCreated:
    """An answer, with the API server's own words; of what it takes, as it was admitted."""

    answer: Answer
    message: str = ""
    admitted: bytes = b""


def refused_with(error: KubeError) -> DryCreated:
    """Return what an error says of the object."""
    message = error.message if isinstance(error, ApiError) else str(error)
    return DryCreated(_answer(error), " ".join(message.split()))


def _answer(error: KubeError) -> Answer:
    match error:
        case Forbidden() if is_of_role(error):
            return Answer.NO_RIGHT
        case Conflict(reason="AlreadyExists"):
            return Answer.EXISTS
        case Forbidden(message=said) if _OVER_QUOTA in said:
            return Answer.OVER_QUOTA
        case ApiError() if _is_judged(error):
            return Answer.REFUSED
        case _:
            return Answer.NOT_ASKED


def _is_judged(error: ApiError) -> bool:
    """Say whether it is the object that is refused; a 404 without a reason is of the path."""
    if _NO_DRY_RUN in error.message:
        return False
    return error.status in _JUDGED or (isinstance(error, NotFound) and bool(error.reason))
