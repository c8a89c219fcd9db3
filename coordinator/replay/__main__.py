"""`python -m coordinator.replay FILE`: play a recording again, or tell the story of a gang in it.

Ends with 0 where all actions are the same (or the story is told), with 1 at the first difference,
and with 2 where the file cannot be read or the gang is not in it.
"""

import argparse
import os
import sys
from pathlib import Path

from coordinator.replay.lines import BadRecordingError, Recording, open_recording
from coordinator.replay.player import play
from coordinator.replay.story import UnknownGangError, tell
from scheduling.model.gang import GangKey

SAME, DIFFERENT, UNREADABLE = 0, 1, 2


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m coordinator.replay", description=__doc__)
    parser.add_argument("file", metavar="FILE", type=Path, help="a recording")
    parser.add_argument(
        "--story", metavar="NAMESPACE/NAME", type=_key, help="tell what became of this gang"
    )
    return parser.parse_args()


def _key(text: str) -> GangKey:
    namespace, _, name = text.partition("/")
    if not (namespace and name) or "/" in name:
        raise argparse.ArgumentTypeError(f"{text!r}; allowed is NAMESPACE/NAME")
    return GangKey(namespace, name)


def _play(recording: Recording) -> int:
    played = play(recording)
    if played.difference:
        _say("\n".join(played.difference))
        return DIFFERENT
    _say(f"{played.steps} steps, {played.actions} actions, all the same{_end_of(recording)}")
    return SAME


def _tell(recording: Recording, key: GangKey) -> int:
    for line in tell(recording, key):
        _say(line)
    return SAME


def _say(text: str) -> None:
    print(text)  # noqa: T201  (for whoever called the command)


def _end_of(recording: Recording) -> str:
    if recording.ended:
        return f"; the recording ended early: {recording.ended}"
    return "; the last line is torn and was left out" if recording.cut else ""


def main() -> int:
    """Play, or tell."""
    given = _arguments()
    try:
        recording = open_recording(given.file)
        return _play(recording) if given.story is None else _tell(recording, given.story)
    except (BadRecordingError, UnknownGangError) as error:
        print(error, file=sys.stderr)  # noqa: T201  (for whoever called the command)
        return UNREADABLE
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SAME


if __name__ == "__main__":
    sys.exit(main())
