"""The gangs that ask for volumes made by hand, on a cluster where that takes no time."""

from benchmarks.by_hand import turns


def test_each_gets_a_verdict() -> None:
    """Too many ways to ask are named; a gang of more kinds of pods than are looked at is, too."""
    assert [turn.verdict for turn in turns(nodes=50)] == [
        "Admitted",
        "Admitted",
        "Admitted",
        "Admitted",
        "Unsupported",
    ]
