"""Folders of a machine that a container saw: a pod has none of them."""

from typing import Final

from kubectl_dsd.convert.report import Report

_CACHES: Final = ("/.cache", "/huggingface", "/root/.triton", "/dev/shm", "/tmp", "/var/run", "/etc/localtime")


def host_mount(source: str, target: str, report: Report) -> None:
    """Say what becomes of a folder `source` of the machine, seen at `target`."""
    if target.startswith("/dev/shm"):
        return
    if any(part in target for part in _CACHES):
        report.note(
            f"volume {target}",
            "a cache on the machine; pods start with an empty one and download the model. To keep it, mount a claim at "
            "/home/dsd/.cache by spec.podTemplate",
        )
    else:
        report.lose(
            f"volume {target}",
            f"{source or 'a folder'} of the machine is not in a pod; copy it to a claim and mount that at {target} by "
            "spec.podTemplate",
        )
