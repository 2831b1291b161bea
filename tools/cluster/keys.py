"""Content keys: the same inputs give the same short text, so that nothing is built twice."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

_DIGITS = 12


def of_texts(parts: Iterable[str]) -> str:
    """A key of texts, in their order."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(f"{len(encoded)}:".encode() + encoded)
    return digest.hexdigest()[:_DIGITS]


def of_files(root: Path, files: Iterable[Path]) -> str:
    """A key of files' contents, executable bits and names relative to ``root``."""
    parts = []
    for file in sorted(files):
        mode = "x" if file.stat().st_mode & 0o100 else "-"
        parts += [str(file.relative_to(root)), mode, hashlib.sha256(file.read_bytes()).hexdigest()]
    return of_texts(parts)
