"""What licences our dependencies have, as SPDX expressions, and which of them may be shipped or used here.

The facts come from the metadata of the installed packages, which the lock pins; what a package's metadata leaves open
was looked up in its own licence file and stands in `_STATED`, with the version it was looked up in left out on purpose:
a new version that says more wins.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from typing import Final

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SHIPPED: Final = frozenset({
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0",
})  # fmt: skip
"""May be in our images or be needed by our wheels. MPL-2.0 asks for the source of changed files: we change none."""

DEVELOPMENT: Final = SHIPPED | {
    "Apache-2.0 WITH LLVM-exception", "BSL-1.0", "CC0-1.0", "CNRI-Python", "LGPL-2.1-only", "MIT-CMU", "Unlicense",
    "LicenseRef-NVIDIA-Proprietary", "LicenseRef-Intel-EULA", "LicenseRef-matplotlib", "LicenseRef-Repoze",
}  # fmt: skip
"""May be in the virtualenv of the tests, which nobody ships: PyTorch brings NVIDIA's libraries, vLLM Intel's."""

_STATED: Final = {
    "cuda-toolkit": "LicenseRef-NVIDIA-Proprietary",
    "matplotlib": "LicenseRef-matplotlib",
    "nvidia-cusparselt-cu13": "LicenseRef-NVIDIA-Proprietary",
    "oss-harmony": "Apache-2.0",
    "setuptools": "MIT",
    "supervisor": "LicenseRef-Repoze",
}

_SPELLINGS: Final = {
    "apache": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache 2.0 license": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "intel end user license agreement for developer tools": "LicenseRef-Intel-EULA",
    "isc license": "ISC",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "psfl": "PSF-2.0",
    "python software foundation license": "PSF-2.0",
    "the unlicense (unlicense)": "Unlicense",
}
"""Other ways of writing the licences, in lower case; "BSD" alone is taken for the three-clause one."""


def licence_of(name: str) -> str:
    """The SPDX expression of an installed distribution; "" where it is not known. Raises PackageNotFoundError."""
    if (key := canonicalize_name(name)) in _STATED:
        return _STATED[key]
    found = metadata.metadata(name)
    declared = [*_field(found, "License-Expression"), *_field(found, "License")]
    classified = [c.rpartition(" :: ")[2] for c in found.get_all("Classifier") or [] if c.startswith("License ::")]
    return next((spdx for text in [*declared, *classified] if (spdx := _spdx(text))), "")


def _field(found: metadata.PackageMetadata, name: str) -> list[str]:
    """The first line of a field; nothing where there is none."""
    return found[name].splitlines()[:1] if name in found else []


def _spdx(text: str) -> str:
    """A licence as an SPDX expression; "" where it is none."""
    known = _SPELLINGS.get(text.strip().lower())
    try:
        return known or str(canonicalize_license_expression(text))
    except InvalidLicenseExpression:
        return ""


def allowed(expression: str, licences: Iterable[str]) -> bool:
    """Whether one of the choices of an SPDX expression (of ANDs and ORs, without brackets) is all in `licences`."""
    choices = [choice.split(" AND ") for choice in re.split(" OR ", expression)]
    return any(set(choice) <= set(licences) for choice in choices)


def homepage_of(name: str) -> str:
    """Where a distribution says it lives; "" where it does not."""
    found = metadata.metadata(name)
    labelled = dict(entry.split(", ", 1) for entry in found.get_all("Project-URL") or [] if ", " in entry)
    urls = {label.strip().lower(): url.strip() for label, url in labelled.items()}
    wanted = ("source", "source code", "repository", "github", "code", "homepage", "home")
    return next((urls[label] for label in wanted if label in urls), next(iter(_field(found, "Home-page")), ""))


@cache
def closure(*requirements: str) -> frozenset[str]:
    """The normalised names of everything that these requirements need on this platform, as installed."""
    found: set[str] = set()
    todo = [Requirement(text) for text in requirements]
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        key = f"{name}[{','.join(sorted(requirement.extras))}]"
        if key in found:
            continue
        found.add(key)
        todo += _needs(name, requirement.extras)
    return frozenset(key.partition("[")[0] for key in found)


def _needs(name: str, extras: Iterable[str]) -> list[Requirement]:
    wanted = [Requirement(text) for text in metadata.requires(name) or []]
    return [r for r in wanted if r.marker is None or any(r.marker.evaluate({"extra": e}) for e in ["", *extras])]
