"""Draws every dashboard into docs/dashboards: `python -m tools.dashboards.preview` (`make dashboards-preview`).

Brings engines and load of its own to the local node; with `--prometheus` it draws from one that is there.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Final

from tools.cluster.console import say, step
from tools.cluster.paths import REPOSITORY
from tools.dashboards import grafana
from tools.dashboards.grafana import Window
from tools.dashboards.preview.page import draw
from tools.dashboards.preview.session import MAIN, NAMESPACE, session
from tools.monitoring.query import Prometheus

TARGET: Final = REPOSITORY / "docs" / "dashboards"
_POINTS: Final = 200
_SCRAPES_OF_A_RATE: Final = 4


def main() -> None:
    """Entry point."""
    wanted = _arguments()
    if wanted.prometheus:
        now = time.time()
        seconds = 60 * wanted.minutes
        pace = max(_SCRAPES_OF_A_RATE * wanted.scrape, seconds / _POINTS)
        window = Window(now - seconds, now, max(wanted.scrape, seconds / _POINTS), pace)
        _draw(Prometheus(wanted.prometheus), window, wanted.out, wanted.namespace, wanted.deployment)
        return
    with tempfile.TemporaryDirectory() as folder, session(Path(folder), wanted.phase) as (server, window):
        _draw(server, window, wanted.out, NAMESPACE, MAIN)


def _draw(server: Prometheus, window: Window, out: Path, namespace: str, deployment: str) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name in grafana.names():
        choice = {"namespace": namespace} | ({"deployment": deployment} if name == "dsd-deployment" else {})
        with step(f"drawing {name}"):
            draw(server, name, window, out / f"{name}.png", **choice)
    say(f"pictures: {out}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.dashboards.preview", description=(__doc__ or "").split(":")[0]
    )
    parser.add_argument("--out", type=Path, default=TARGET, help="folder for the pictures (docs/dashboards)")
    parser.add_argument("--phase", type=float, default=20, help="seconds of each of the 16 phases of the load")
    parser.add_argument("--prometheus", metavar="URL", help="draw from this server instead")
    parser.add_argument("--minutes", type=float, default=60, help="with --prometheus: how far back (60)")
    parser.add_argument(
        "--scrape", type=float, default=15, help="with --prometheus: its scrape interval in seconds (15)"
    )
    parser.add_argument("--namespace", default=".*", help="with --prometheus: namespace of the DSDDeployment to draw")
    parser.add_argument("--deployment", default=".*", help="with --prometheus: its name")
    return parser.parse_args()


if __name__ == "__main__":
    main()
