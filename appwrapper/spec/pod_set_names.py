"""Names the pod sets of all items; the names fit into label values, which pods carry."""

import hashlib
import re
from collections import Counter

from kube.objects import names

LONGEST = 63
_DIGEST = 8
_FITS = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


class PodSetNames:
    """Gives each pod set a name of its own: that of its item, with the part where it has several.

    A name that does not fit a label, or is taken, gets a digest of kind, name and part behind it:
    it depends on nothing that another leader would see otherwise.
    """

    def __init__(self) -> None:
        self._taken = {names.RAY_HEAD_GROUP, ""}
        self._asked: Counter[tuple[str, str, str]] = Counter()

    def name(self, kind: str, item: str, part: str) -> str:
        """Return a name that was not given before."""
        wished = f"{item}.{part}" if part else item
        fits = len(wished) <= LONGEST and _FITS.fullmatch(wished)
        name = wished if fits else ""
        while not name or name in self._taken:
            self._asked[kind, item, part] += 1
            before = self._asked[kind, item, part] - 1
            name = _marked(wished, kind, item, part, *([str(before)] if before else []))
        self._taken.add(name)
        return name


def _marked(wished: str, *told: str) -> str:
    digest = hashlib.sha256("\0".join(told).encode("utf-8", "surrogatepass")).hexdigest()
    start = re.sub(r"[^-A-Za-z0-9_.]", "-", wished)[: LONGEST - _DIGEST - 1].strip("-_.")
    return f"{start or 'pods'}-{digest[:_DIGEST]}"
