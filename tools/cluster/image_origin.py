"""Where an image comes from, for its labels: the last commit that touched what it is made of.

Not the newest commit of all: an image is named by its inputs, so the same inputs must give the same labels.
"""

from collections.abc import Sequence
from pathlib import Path

from tools.cluster import shell

DIRTY = "-dirty"
"""Ends the revision of an image whose inputs differ from that commit."""


def build_arguments(root: Path, files: Sequence[Path]) -> dict[str, str]:
    """REVISION and CREATED (RFC 3339) for these inputs; nothing where git knows none of them.

    The commit's time rather than the clock's: building the same commit twice gives the same image configuration.
    """
    names = [file.relative_to(root) for file in files]
    # git would refuse a checkout of another user, as root has it in many a CI.
    git = ["git", "-c", f"safe.directory={root.resolve()}"]
    if not (root / ".git").exists():
        return {}
    commit = shell.run([*git, "log", "-1", "--format=%H %cI", "--", *names], cwd=root).split()
    if not commit:
        return {}
    changed = shell.run([*git, "status", "--porcelain", "--", *names], cwd=root)
    return {"REVISION": commit[0] + (DIRTY if changed else ""), "CREATED": commit[1]}
