"""The least that an extender in Python can do: `python -m benchmarks.does_nothing`.

The extender's own program with its watches, its server and its settings, but any node will do for
any pod, and all are equally good: questions are read, names are given back, nothing is judged.
"""

import sys
from itertools import repeat

from extender import serve
from extender.__main__ import main
from extender.app import Extender, Parts
from extender.wire.protocol import Body, filter_answer, priorities_answer, read_question


class DoesNothing(Extender):
    """Passes every node for every pod."""

    def filter(self, body: Body) -> Parts:
        """Give every name back."""
        asked = read_question(body)
        return filter_answer(asked, asked.listed, {}, {})

    def prioritize(self, body: Body) -> Parts:
        """Score every node the same."""
        asked = read_question(body)
        return (priorities_answer(asked.listed, repeat(0, len(asked.names))),)


if __name__ == "__main__":
    setattr(serve, "Extender", DoesNothing)  # noqa: B010 - a class is no variable to mypy
    sys.exit(main())
