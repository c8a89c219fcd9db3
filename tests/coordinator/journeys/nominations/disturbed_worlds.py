"""Worlds in which nominations are disturbed, for the journeys beside it."""


def each_is_of(action: object, gang: str) -> bool:
    """Whether an action is for a gang."""
    key = getattr(action, "gang", None)
    return key is not None and key.name == gang
