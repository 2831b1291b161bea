"""Archives: the same bytes whoever packs them and when, and what is missing or strange in one is named."""

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from tools.release.build import normalise
from tools.release.checks import CheckError, _same
from tools.release.projects import RUNTIME
from tools.release.wheel_metadata import problems_of_metadata, problems_of_sdist, problems_of_wheel

_VERSION = RUNTIME.version()
_METADATA = f"""\
Metadata-Version: 2.4
Name: dsd-runtime
Version: {_VERSION}
Summary: A plugin
License-Expression: Apache-2.0
Requires-Python: >=3.11
Description-Content-Type: text/markdown

# Text
"""


def _tar(path: Path, files: dict[str, str], when: int, owner: str) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname, member.uid = len(text), when, owner, when % 1000
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def _wheel(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_time_owner_and_order_leave_no_trace(tmp_path: Path) -> None:
    first = _tar(tmp_path / "1.tar.gz", {"p/a": "a", "p/b": "b"}, 1_600_000_001, "one")
    second = _tar(tmp_path / "2.tar.gz", {"p/b": "b", "p/a": "a"}, 1_700_000_002, "two")
    assert first.read_bytes() != second.read_bytes()
    for path in (first, second):
        normalise(path, 1_500_000_000)
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        assert [(m.name, m.mtime, m.uid, m.uname) for m in archive] == [
            ("p/a", 1_500_000_000, 0, ""), ("p/b", 1_500_000_000, 0, ""),
        ]  # fmt: skip


def test_contents_are_kept(tmp_path: Path) -> None:
    path = _tar(tmp_path / "1.tar.gz", {"p/a": "one", "p/b": "two"}, 1, "one")
    normalise(path, 1_500_000_000)
    with tarfile.open(path) as archive:
        texts = {m.name: file.read() for m in archive if (file := archive.extractfile(m))}
    assert texts == {"p/a": b"one", "p/b": b"two"}


def test_good_metadata() -> None:
    assert problems_of_metadata(_METADATA.encode(), RUNTIME) == []


def test_bad_metadata() -> None:
    for line, problem in {
        f"Version: {_VERSION}": "version",
        "License-Expression: Apache-2.0": "licence",
        "Summary: A plugin": "summary",
        "Requires-Python: >=3.11": "Python",
        "Description-Content-Type: text/markdown": "description's type",
    }.items():
        found = problems_of_metadata(_METADATA.replace(f"{line}\n", "").encode(), RUNTIME)
        assert [text for text in found if problem in text], (line, found)
    assert problems_of_metadata(_METADATA.replace("2.4", "9.9").encode(), RUNTIME)


def test_wheel(tmp_path: Path) -> None:
    home = f"dsd_runtime-{_VERSION}.dist-info"
    good = {
        "dsd_runtime/__init__.py": "", "dsd_runtime/py.typed": "", f"{home}/METADATA": _METADATA,
        f"{home}/licenses/LICENSE": "", f"{home}/entry_points.txt": "",
    }  # fmt: skip
    assert problems_of_wheel(_wheel(tmp_path / "good.whl", good), RUNTIME) == []
    bad = {name: text for name, text in good.items() if not name.endswith("py.typed")} | {"tests/test_x.py": ""}
    assert problems_of_wheel(_wheel(tmp_path / "bad.whl", bad), RUNTIME) == [
        "holds tests/test_x.py, which is not of the package", "lacks dsd_runtime/py.typed",
    ]  # fmt: skip


def test_source_distribution(tmp_path: Path) -> None:
    top = f"dsd_runtime-{_VERSION}"
    good = {f"{top}/PKG-INFO": _METADATA} | {f"{top}/{name}": "" for name in ("LICENSE", "README.md", "pyproject.toml")}
    assert problems_of_sdist(_tar(tmp_path / "good.tar.gz", good, 1, "me"), RUNTIME) == []
    del good[f"{top}/LICENSE"]
    assert problems_of_sdist(_tar(tmp_path / "bad.tar.gz", good | {"stray": ""}, 1, "me"), RUNTIME) == [
        f"holds stray outside {top}", "lacks LICENSE",
    ]  # fmt: skip


def test_two_builds_that_differ_are_kept_and_named(tmp_path: Path) -> None:
    first, second = tmp_path / "x.whl", tmp_path / "again" / "x.whl"
    second.parent.mkdir()
    first.write_text("one")
    second.write_text("two")
    with pytest.raises(CheckError, match=r"two builds of x\.whl differ; the other one is .*second-x\.whl"):
        _same(first, second)
    assert (tmp_path / "second-x.whl").read_text() == "two"
    second.write_text("one")
    _same(first, second)
