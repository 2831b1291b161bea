"""What a conversion found: problems end it, `lost` did not fit into the resource, notes are decisions to read."""

from dataclasses import dataclass
from typing import Final

from dsd_runtime import convert
from dsd_runtime.convert.report import Report as BaseReport
from dsd_runtime.schedule import Problem


@dataclass(frozen=True)
class NeededSecret:
    """A key of a Secret that the resource refers to and that somebody has to make."""

    name: str
    key: str
    variable: str
    """Environment variable from which the printed command takes the value."""


class Report(BaseReport):
    """Collects all three, and the Secrets that the resource needs."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: list[Problem] = []
        self.secrets: list[NeededSecret] = []

    def lose(self, field: str, message: str) -> None:
        """Something that the resource does not say, so that the engine would differ."""
        self.lost.append(Problem(field, message))

    def need(self, secret: NeededSecret) -> None:
        """A Secret that has to be made."""
        if secret not in self.secrets:
            self.secrets.append(secret)

    def take(self, error: convert.ConvertError, prefix: str = "") -> None:
        """The problems of a conversion inside this one."""
        self.problems += [Problem(f"{prefix}{p.field}", p.message) for p in error.problems]


def command_of(secrets: list[NeededSecret], namespace: str | None) -> list[str]:
    """The commands that make the Secrets; each takes the values from the shell's environment, none holds one."""
    where = f" --namespace {namespace}" if namespace else ""
    names = dict.fromkeys(secret.name for secret in secrets)
    return [
        f"kubectl create secret generic {name}{where}"
        + "".join(f' --from-literal={s.key}="${s.variable}"' for s in secrets if s.name == name)
        for name in names
    ]


NO_SPECULATION: Final = (
    "no speculative decoding is configured here, and a DSDDeployment needs a drafter; add --speculative-config to the "
    "command, such as --speculative-config "
    """'{"method": "ngram", "num_speculative_tokens": 3}'"""
)
