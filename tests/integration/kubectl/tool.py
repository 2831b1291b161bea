"""`kubectl dsd` on a real API server: the command in this process, and a deployment whose pods answer."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from kubectl_dsd.main import cli
from tests.integration.engine_stand_in import StandIn
from tests.integration.world import World


@dataclass(frozen=True)
class Dsd:
    """The command for one namespace."""

    kubeconfig: Path
    namespace: str

    def __call__(self, *arguments: str, code: int = 0, given: str | None = None) -> Result:
        """Run it; it must end with `code`, and never with a trace."""
        where = ["--kubeconfig", str(self.kubeconfig), "-n", self.namespace]
        done = CliRunner().invoke(cli, [*where, *arguments], input=given)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert done.exit_code == code, f"{done.stdout}\n{done.stderr}"
        return done

    def json(self, *arguments: str, code: int = 0, given: str | None = None) -> Any:
        """What it prints with -o json."""
        return json.loads(self(*arguments, "-o", "json", code=code, given=given).stdout)


@dataclass
class Live:
    """A deployment with an operator and two pods that answer."""

    world: World
    dsd: Dsd
    engines: list[StandIn]
    pods: list[str]


def squeezed(text: str) -> list[str]:
    """The lines, with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines()]
