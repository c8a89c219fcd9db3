"""`python -m coordinator.replay FILE`: plays a recording again and compares the actions.

Ends with 0 where all actions are the same, with 1 at the first difference, and with 2 where the
file cannot be read.
"""

import argparse
import os
import sys
from pathlib import Path

from coordinator.replay.lines import BadRecordingError, Recording, open_recording
from coordinator.replay.player import play

SAME, DIFFERENT, UNREADABLE = 0, 1, 2


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m coordinator.replay", description=__doc__)
    parser.add_argument("file", metavar="FILE", type=Path, help="a recording")
    return parser.parse_args()


def _play(recording: Recording) -> int:
    played = play(recording)
    if played.difference:
        _say("\n".join(played.difference))
        return DIFFERENT
    _say(f"{played.steps} steps, {played.actions} actions, all the same{_end_of(recording)}")
    return SAME


def _say(text: str) -> None:
    print(text)  # noqa: T201  (for whoever called the command)


def _end_of(recording: Recording) -> str:
    if recording.ended:
        return f"; the recording ended early: {recording.ended}"
    return "; the last line is torn and was left out" if recording.cut else ""


def main() -> int:
    """Play the recording."""
    given = _arguments()
    try:
        return _play(open_recording(given.file))
    except BadRecordingError as error:
        print(error, file=sys.stderr)  # noqa: T201  (for whoever called the command)
        return UNREADABLE
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SAME


if __name__ == "__main__":
    sys.exit(main())
