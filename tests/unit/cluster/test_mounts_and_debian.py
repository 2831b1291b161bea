"""Reading what the machine says: mounts, apt's sources, installed packages."""

import os
from pathlib import Path

import pytest

from tools.cluster import debian, mounts, shell
from tools.cluster.debian import Package
from tools.cluster.errors import ClusterError

_MOUNTINFO = (
    "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    "30 22 0:26 / /a\\040b/c rw shared:5 master:1 - tmpfs tmpfs rw\n"
    "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)


def test_mounts() -> None:
    parsed = mounts.parse(_MOUNTINFO)
    assert [(str(one.point), one.kind) for one in parsed] == [
        ("/", "ext4"),
        ("/a b/c", "tmpfs"),
        ("/sys/fs/cgroup/memory", "cgroup"),
    ]


def test_unmounts_below_only_and_latest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"1 0 0:1 / {point} rw - tmpfs x rw\n" for point in ("/s", "/s/a", "/s/a/b", "/sa", "/t"))
    asked: list[str] = []

    def succeed(command: list[str | Path]) -> bool:
        asked.append(str(command[-1]))
        return True

    monkeypatch.setattr(mounts, "current", lambda: mounts.parse(text))
    monkeypatch.setattr(shell, "succeeds", succeed)
    mounts.unmount_below(Path("/s"))
    assert asked == ["/s/a/b", "/s/a", "/s"]


@pytest.mark.parametrize(
    ("targets", "found"),
    [
        ("site-b|Other|Other|main\nsite-a|Debian|Debian|main\n", "site-a"),
        ("site-s|Debian|Debian-Security|main\nsite-c|Debian|Debian|contrib\n", None),
        ("", None),
    ],
)
def test_mirror_is_debians_own(targets: str, found: str | None) -> None:
    assert debian.parse_mirror(targets) == found


def test_missing_packages_are_named_with_the_command_for_those_who_are_not_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    packages = [Package("one", "/nonexistent"), Package("two", "no-such-program-here"), Package("here", "/proc")]
    with pytest.raises(ClusterError, match=r"apt-get install -y --no-install-recommends one two$"):
        debian.ensure(packages)


def test_nothing_missing_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    debian.ensure([Package("sh", "sh"), Package("here", "/proc")])
