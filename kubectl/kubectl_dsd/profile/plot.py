"""The plot of a profile: throughput of every K over that of the smallest one, by concurrency. Pure but for plotext.

Relative, for at one concurrency the throughputs differ by percents and between concurrencies by factors.
"""

from statistics import median
from typing import Any, Final

import plotext  # type: ignore[import-untyped]

from kubectl_dsd.profile.choice import Samples

WIDTH: Final = 76
HEIGHT: Final = 18

_MARKERS: Final = "●▲■◆○△□◇"


def relative(samples: Samples) -> dict[int, list[float]]:
    """K -> throughput over that of the smallest K, by ascending concurrency; medians of the rounds' ratios."""
    concurrencies = sorted(samples)
    base = min(samples[concurrencies[0]])
    return {
        k: [median(a / b for a, b in zip(samples[c][k], samples[c][base], strict=True)) for c in concurrencies]
        for k in sorted(samples[concurrencies[0]])
    }


def draw(samples: Samples, width: int = WIDTH, height: int = HEIGHT) -> str:
    """The plot as lines of text without colours; empty with fewer than two concurrencies."""
    concurrencies = sorted(samples)
    if len(concurrencies) < 2:
        return ""
    figure: Any = plotext.figure
    figure.clear()
    figure.plot_size(width, height)
    figure.theme("colorless")
    figure.canvas("default")
    places = list(range(len(concurrencies)))
    lines = relative(samples)
    for values in lines.values():
        figure.draw(figure.signal(places, values, marker="·").lines())
    for i, (k, values) in enumerate(lines.items()):
        figure.draw(figure.signal(places, values, marker=_MARKERS[i % len(_MARKERS)]).label(f"K={k}"))
    figure.ruler("x").ticks(places, [str(c) for c in concurrencies])
    figure.title(f"tokens per second relative to K={min(lines)}, by concurrency")
    # In the corner where the lines are lower.
    first, last = (max(values[i] for values in lines.values()) for i in (0, -1))
    x, ha = (places[-1], "right") if last <= first else (places[0], "left")
    figure.legend(x=x, y=max(first, last, 1.0), ha=ha, va="top", relative=True)
    text = str(figure.build().string(colorless=True))
    figure.clear()
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
