"""What an index, and a person who reads it, expect of a wheel's and a source distribution's metadata."""

import tarfile
import zipfile
from pathlib import Path

from packaging.metadata import InvalidMetadata, Metadata

from tools.release.projects import Project


def problems_of_wheel(path: Path, project: Project) -> list[str]:
    """What is wrong with a wheel; empty when nothing is."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        home = next(name.partition("/")[0] for name in names if ".dist-info/" in name)
        text = archive.read(f"{home}/METADATA")
    package = Path(project.package).name
    strays = [name for name in names if not name.startswith((f"{package}/", f"{home}/"))]
    found = [f"holds {name}, which is not of the package" for name in strays]
    wanted = (f"{package}/py.typed", f"{home}/licenses/LICENSE", f"{home}/entry_points.txt")
    found += [f"lacks {name}" for name in wanted if name not in names]
    return found + problems_of_metadata(text, project)


def problems_of_sdist(path: Path, project: Project) -> list[str]:
    """What is wrong with a source distribution; empty when nothing is."""
    top = f"{project.stem}-{project.version()}"
    with tarfile.open(path) as archive:
        names = archive.getnames()
        file = archive.extractfile(f"{top}/PKG-INFO")
        text = file.read() if file else b""
    found = [f"holds {name} outside {top}" for name in names if name.partition("/")[0] != top]
    found += [f"lacks {name}" for name in ("LICENSE", "README.md", "pyproject.toml") if f"{top}/{name}" not in names]
    return found + problems_of_metadata(text, project)


def problems_of_metadata(text: bytes, project: Project) -> list[str]:
    """What the rules of the core metadata, and ours, have against a METADATA or PKG-INFO."""
    try:
        metadata = Metadata.from_email(text, validate=True)
    except ExceptionGroup as group:
        return [str(error) for error in group.exceptions if isinstance(error, InvalidMetadata)] or [str(group)]
    expected = {
        "name": (metadata.name, project.name),
        "version": (str(metadata.version), project.version()),
        "licence": (metadata.license_expression, "Apache-2.0"),
        "description's type": (metadata.description_content_type, "text/markdown"),
    }
    found = [f"{what} is {is_!r}, not {wanted!r}" for what, (is_, wanted) in expected.items() if is_ != wanted]
    said = {"summary": metadata.summary, "description": metadata.description, "Python": metadata.requires_python}
    return found + [f"says no {what}" for what, value in said.items() if not value]
