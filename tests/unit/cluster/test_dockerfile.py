"""Inputs of a target: its stages' text, and the paths they copy."""

import pytest

from tools.cluster import dockerfile, paths, project_images
from tools.cluster.errors import ClusterError

_TEXT = """\
# comment
ARG BASE=debian
FROM ${BASE} AS build
COPY requirements/build.txt requirements/
RUN one \\
    # a comment between
 && two
FROM build AS wheel-a
COPY --chown=1:1 a ./b/ /src/
FROM build AS wheel-b
COPY b b
FROM other AS final-a
COPY --from=wheel-a /wheels /wheels
USER 1
FROM scratch
COPY c c
"""


def test_paths_of_all_stages_below() -> None:
    assert dockerfile.inputs(_TEXT, "final-a").paths == {"requirements/build.txt", "a", "b"}
    assert dockerfile.inputs(_TEXT, "wheel-b").paths == {"requirements/build.txt", "b"}
    assert dockerfile.inputs(_TEXT, "4").paths == {"c"}


def test_text_has_the_target_and_what_it_needs_only() -> None:
    text = dockerfile.inputs(_TEXT, "final-a").text
    assert "ARG BASE=debian" in text
    assert "RUN one && two" in " ".join(text.split())
    assert "wheel-b" not in text
    assert "comment" not in text


def test_unknown_target_is_named_with_the_known() -> None:
    with pytest.raises(ClusterError, match="no target 'x'; it has build, wheel-a"):
        dockerfile.inputs(_TEXT, "x")


def test_patterns_are_refused() -> None:
    with pytest.raises(ClusterError, match="pattern"):
        dockerfile.inputs("FROM a AS b\nCOPY *.txt /\n", "b")


@pytest.mark.parametrize("target", project_images.TARGETS)
def test_the_projects_own_dockerfile(target: str) -> None:
    found = dockerfile.inputs((paths.REPOSITORY / "Dockerfile").read_text(), target)
    assert "runtime" in found.paths
    assert all((paths.REPOSITORY / path).exists() for path in found.paths)
