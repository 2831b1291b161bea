"""Removing files for certain."""

import shutil
from pathlib import Path


def remove_tree(path: Path) -> None:
    """Remove a file or a directory; nothing happens if it is not there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
