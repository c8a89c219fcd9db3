"""Draws the findings of the benchmarks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Points = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture of several lines and points; `levels` are drawn dotted from side to side."""

    title: str
    across: str
    up: str
    lines: Mapping[str, Points]
    levels: Mapping[str, float] = field(default_factory=dict)
    scale: str = "linear"
    points: Mapping[str, Points] = field(default_factory=dict)
    lowest: float | None = None


def draw(panels: Sequence[Panel], path: Path) -> None:
    """Write the panels side by side, as a PNG or an SVG by the end of the path."""
    import matplotlib as mpl  # noqa: PLC0415 - most who import this draw nothing, and it takes 1 s
    from matplotlib.figure import Figure  # noqa: PLC0415

    mpl.rcParams.update({"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "muster"})
    figure = Figure(figsize=(5.5 * len(panels), 4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for panel, axis in zip(panels, axes, strict=True):
        for name, (across, up) in panel.lines.items():
            axis.plot(across, up, label=name, linewidth=1.2)
        for name, (across, up) in panel.points.items():
            axis.scatter(across, up, label=name, s=18)
        for name, level in panel.levels.items():
            axis.axhline(level, linestyle=":", color="gray", label=name)
        axis.set(title=panel.title, xlabel=panel.across, ylabel=panel.up)
        axis.set(xscale=panel.scale, yscale=panel.scale)
        axis.set_ylim(bottom=panel.lowest)
        axis.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
