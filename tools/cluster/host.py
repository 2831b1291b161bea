"""What a node changes on the machine outside its own files: remembered before, put back afterwards."""

import contextlib
import itertools
import json
from pathlib import Path
from typing import Any

from tools.cluster import shell
from tools.cluster.paths import Layout

_SYSCTLS = Path("/proc/sys")
# Written by the kubelet, kube-proxy and the CNI plug-ins.
_CHANGED = (
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/route_localnet",
    "net/ipv6/conf/all/forwarding",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
# Made by containerd, the CNI plug-ins and the kubelet wherever their data lies.
_DIRECTORIES = (
    "/run/containerd",
    "/run/containerd/s",
    "/var/lib/cni",
    "/var/lib/cni/results",
    "/var/lib/kubelet",
    "/var/lib/kubelet/device-plugins",
    "/var/log/containers",
)
# A record may be of another version of this file: a checkout is changed while its node runs.
_EMPTY: dict[str, Any] = {"settings": {}, "chains": {}, "absent": []}


def _record(layout: Layout) -> Path:
    return layout.root / "host.json"


def remember(layout: Layout) -> None:
    """Write down what the machine is like, unless an earlier start that was not undone did so."""
    if _record(layout).exists():
        return
    settings = {name: (_SYSCTLS / name).read_text().strip() for name in _CHANGED if (_SYSCTLS / name).exists()}
    chains = {program: sorted(chain_names(shell.run([f"{program}-save"]))) for program in ("iptables", "ip6tables")}
    absent = [name for name in _DIRECTORIES if not Path(name).exists()]
    temporary = _record(layout).with_suffix(".new")
    temporary.write_text(json.dumps(_EMPTY | {"settings": settings, "chains": chains, "absent": absent}))
    temporary.rename(_record(layout))


def restore(layout: Layout) -> None:
    """Put back the settings, remove the chains and the empty directories that came since, and forget."""
    if not _record(layout).exists():
        return
    before = _EMPTY | json.loads(_record(layout).read_text())
    for name, value in before["settings"].items():
        if (_SYSCTLS / name).read_text().strip() != value:
            (_SYSCTLS / name).write_text(value)
    for program, chains in before["chains"].items():
        changes = removal(shell.run([f"{program}-save"]), frozenset(chains))
        if changes:
            shell.run([f"{program}-restore", "--noflush"], stdin=changes)
    for name in reversed(before["absent"]):
        with contextlib.suppress(OSError):  # not there, or used by somebody else by now
            Path(name).rmdir()
    _record(layout).unlink()


def chain_names(saved: str) -> set[str]:
    """``table/chain`` of every chain in the output of ``iptables-save``."""
    return {f"{table}/{line[1:].split()[0]}" for table, line in _lines(saved) if line.startswith(":")}


def removal(saved: str, kept: frozenset[str]) -> str:
    """Input for ``iptables-restore --noflush`` that removes Kubernetes' and CNI's chains and the rules jumping to them.

    ``kept`` are chains (``table/chain``) that were there before the node.
    """
    ours = {name for name in chain_names(saved) - kept if name.split("/")[1].startswith(("KUBE-", "CNI-"))}
    text = []
    for table in dict.fromkeys(name.split("/")[0] for name in sorted(ours)):
        mine = sorted(name.split("/")[1] for name in ours if name.startswith(f"{table}/"))
        jumps = [line.replace("-A ", "-D ", 1) for of, line in _lines(saved) if of == table and _jumps(line, mine)]
        flushes = [f":{chain} - [0:0]" for chain in mine]
        text += [f"*{table}", *flushes, *jumps, *(f"-X {chain}" for chain in mine), "COMMIT"]
    return "".join(f"{line}\n" for line in text)


def _lines(saved: str) -> list[tuple[str, str]]:
    table, found = "", []
    for line in saved.splitlines():
        if line.startswith("*"):
            table = line[1:].strip()
        found.append((table, line))
    return found


def _jumps(rule: str, chains: list[str]) -> bool:
    words = rule.split()
    if len(words) < 2 or words[0] != "-A" or words[1] in chains:
        return False  # rules of the chains themselves go when the chain is flushed
    return any(first in ("-j", "-g") and second in chains for first, second in itertools.pairwise(words))
