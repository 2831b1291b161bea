"""The scrape configuration of docs/how-to/monitoring.md, for a Prometheus on this machine: it finds all our pods."""

from pathlib import Path
from typing import Any, Final

import yaml

from tools.cluster.paths import REPOSITORY

PAGE: Final = REPOSITORY / "docs" / "how-to" / "monitoring.md"
_BEGIN, _END = "<!-- yaml: scrape -->\n```yaml\n", "```\n"


def documented(kubeconfig: Path) -> list[dict[str, Any]]:
    """The jobs as the page has them; only the way into the cluster differs from that of a Prometheus inside."""
    text = PAGE.read_text(encoding="utf-8").partition(_BEGIN)[2].partition(_END)[0]
    return from_outside(yaml.safe_load(text)["scrape_configs"], kubeconfig)


def from_outside(jobs: list[dict[str, Any]], kubeconfig: Path) -> list[dict[str, Any]]:
    """The same jobs for a Prometheus outside the cluster: what they discover there, they ask for by a kubeconfig."""
    for job in jobs:
        for discovery in job.get("kubernetes_sd_configs") or ():
            discovery["kubeconfig_file"] = str(kubeconfig)
    return jobs
