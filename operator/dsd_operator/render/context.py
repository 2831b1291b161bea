"""What rendering needs besides the resource: the operator's settings and the schedule's revision."""

from dataclasses import dataclass

from dsd_runtime.protocol import Revision, TokenReviewAuth


@dataclass(frozen=True)
class RenderContext:
    """`runtime_image` is used where the resource names none; without `auth` the pods refuse schedules over HTTP."""

    runtime_image: str
    revision: Revision
    auth: TokenReviewAuth | None = None
