"""Options that the sub-commands share, and the completion of names.

`-n`, `--context`, `--kubeconfig` and `--request-timeout` may stand before or after the sub-command, as with kubectl.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from dsd_runtime.cli.options import output_option as output_option
from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.kubeconfig import TIMEOUT_SECONDS, Target, contexts

F = TypeVar("F", bound=Callable[..., Any])

_COMPLETION_SECONDS: Final = 3.0
_PARAMETERS: Final = ("namespace", "context_name", "kubeconfig", "request_timeout")


def target_options(function: F) -> F:
    """The options themselves; `Target` is made of them by `target_of`."""
    options = (
        click.option("-n", "--namespace", help="Namespace. Default: that of the context.", shell_complete=_namespaces),
        click.option(
            "--context", "context_name", help="Context of the kubeconfig to use.", shell_complete=_context_names
        ),
        click.option("--kubeconfig", type=click.Path(), help="Kubeconfig file. Default: as kubectl finds it."),
        click.option(
            "--request-timeout",
            type=click.FloatRange(0, min_open=True),
            help=f"Seconds to wait for an answer of the API server. Default: {TIMEOUT_SECONDS:.0f}.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def cluster_options(function: F) -> F:
    """The options above for a sub-command, which gets a `cluster` instead of them."""

    @wraps(function)
    def with_cluster(*args: Any, **values: Any) -> Any:
        target = target_of(click.get_current_context())
        rest = {name: value for name, value in values.items() if name not in _PARAMETERS}
        return function(*args, cluster=Cluster.connect(target), **rest)

    return target_options(with_cluster)  # type: ignore[return-value]


def all_namespaces_option(function: F) -> F:
    """`-A`."""
    return click.option("-A", "--all-namespaces", is_flag=True, help="Look into every namespace.")(function)


def name_argument(*, required: bool = True) -> Callable[[F], F]:
    """NAME of a DSDDeployment; completed from the cluster."""
    return click.argument("name", required=required, shell_complete=deployment_names)


def target_of(context: click.Context) -> Target:
    """What the command line says, the innermost command first."""
    found = Target()
    for level in reversed(_levels(context)):
        if any(name in level.params for name in _PARAMETERS):
            found = _target(level.params).over(found)
    return found


def _levels(context: click.Context | None) -> list[click.Context]:
    levels = []
    while context is not None:
        levels.append(context)
        context = context.parent
    return levels


def _target(params: dict[str, Any]) -> Target:
    return Target(
        params.get("kubeconfig"),
        params.get("context_name"),
        params.get("namespace"),
        params.get("request_timeout"),
    )


# Completion: silent where the cluster cannot be reached, and quick.


def deployment_names(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of DSDDeployments in the namespace that is given so far."""

    def ask(cluster: Cluster) -> list[Json]:
        return cluster.deployments()

    return _complete(context, incomplete, ask)


def _namespaces(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _complete(context, incomplete, lambda cluster: cluster.list("Namespace", None))


def _context_names(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in contexts(target_of(context)) if name.startswith(incomplete)]


def _complete(context: click.Context, incomplete: str, ask: Callable[[Cluster], list[Json]]) -> list[CompletionItem]:
    target = target_of(context)
    hurried = Target(target.kubeconfig, target.context, target.namespace, _COMPLETION_SECONDS)
    try:
        names = sorted(found["metadata"]["name"] for found in ask(Cluster.connect(hurried)))
    except click.ClickException:
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
