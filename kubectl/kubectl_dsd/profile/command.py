"""The command `kubectl dsd profile`: options, checks before anything changes, and what is printed."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.errors import EXIT_CODES, Failure
from kubectl_dsd.options import cluster_options, name_argument, output_option
from kubectl_dsd.output import Output, console, note, print_data, print_tables
from kubectl_dsd.profile import prompts as prompt_sets
from kubectl_dsd.profile import report
from kubectl_dsd.profile.engines import cores_of, envelope_of, ready_pods
from kubectl_dsd.profile.measurement import Job, Wishes, measure
from kubectl_dsd.profile.picture import save
from kubectl_dsd.profile.plan import Plan, concurrencies_of, tokens_of
from kubectl_dsd.profile.results import Results, Subject, document, plan_document
from kubectl_dsd.profile.schedules import condition
from kubectl_dsd.profile.signals import EXIT
from kubectl_dsd.reach import ask_engines
from kubectl_dsd.schedule.managers import warnings
from kubectl_dsd.wanted import schedule_of


@click.command(epilog=EXIT_CODES)
@name_argument()
@click.option(
    "--concurrency", help="Requests at once per engine core. Default: 1,2,4,… up to the engine's limit and 64."
)
@click.option("--k", "tokens", help="Values of K. Default: those that the engine prepared and those of the schedule.")
@click.option(
    "--rounds", type=click.IntRange(1), default=5, show_default=True, help="Times that everything is measured."
)
@click.option(
    "--duration", type=click.FloatRange(0.5), default=8.0, show_default=True, help="Seconds of one measurement."
)
@click.option(
    "--warm-up", type=click.FloatRange(0), default=10.0, show_default=True, help="Seconds of load before the first."
)
@click.option("--prompts", type=click.Path(path_type=Path, dir_okay=False), help="JSONL file with prompt or messages.")
@click.option("--max-tokens", type=click.IntRange(1), default=128, show_default=True, help="Longest answer.")
@click.option("--temperature", type=click.FloatRange(0), default=0.0, show_default=True, help="0 is greedy.")
@click.option("--url", help="Send requests there instead of to each pod through kubectl port-forward.")
@click.option("--api-key", envvar="DSD_API_KEY", help="The engines' key, if they have one. [env: DSD_API_KEY]")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Save tables and plot to a FILE.svg too.")
@click.option("--apply", "apply_it", is_flag=True, help="Set the best schedule if it is better beyond the interval.")
@click.option("--force", is_flag=True, help="With --apply: set it in any case.")
@click.option("--dry-run", is_flag=True, help="Say what would be measured and how long it takes, and stop.")
@output_option
@cluster_options
def profile(cluster: Cluster, name: str, output: Output, dry_run: bool, plot: Path | None, **options: Any) -> None:
    """Measure which K is best at which concurrency on the running deployment NAME.

    Each K is set in turn through the schedule of the deployment, so its users see other speeds meanwhile. The schedule
    from before is put back at the end, after an error and after Ctrl-C. Run it while nobody else uses the engines.
    """
    if plot is not None and plot.suffix != ".svg":
        raise click.UsageError("--plot writes SVG: give it a name that ends in .svg")
    job = prepare(cluster, cluster.deployment(name), options)
    report_plan(job, prompts_text(job, options["prompts"]), dry_run, output)
    if dry_run:
        return
    outcome = measure(cluster, job)
    if outcome.results is not None:
        show(outcome.results, output, plot)
    for text in outcome.notes:
        note(text)
    if outcome.signal is not None:
        sys.exit(EXIT + outcome.signal)
    if outcome.failure is not None:
        raise outcome.failure


def prepare(cluster: Cluster, resource: Json, options: dict[str, Any]) -> Job:
    """Check everything that can be checked before something changes; raises Failure."""
    name = str(resource["metadata"]["name"])
    check_ready(resource)
    pods = ready_pods(cluster.pods(resource), name)
    statuses = statuses_of(cluster, pods)
    envelope, present = envelope_of(statuses), schedule_of(resource)
    limit = int(envelope["maxNumSeqs"])
    plan = Plan(
        concurrencies_of(options["concurrency"], limit),
        tokens_of(options["tokens"], envelope, present.ranges),
        options["rounds"],
        options["duration"],
        options["warm_up"],
    )
    subject = Subject(
        namespace=str(resource["metadata"]["namespace"]),
        name=name,
        method=str(envelope["method"]),
        pods=tuple(str(pod["metadata"]["name"]) for pod in pods),
        cores=sum(map(cores_of, statuses)),
        largest=max(limit, present.ranges[-1].end_batch_size),
        present=present,
        verify_only=bool(envelope.get("verifyOnly")),
    )
    warn_unprepared(plan, envelope)
    for text in warnings(resource) if options["apply_it"] else ():
        note(text)
    found = prompt_sets.from_file(options["prompts"]) if options["prompts"] else prompt_sets.built_in()
    keys = ("max_tokens", "temperature", "url", "api_key", "force")
    wishes = Wishes(prompts=found, apply=options["apply_it"], **{key: options[key] for key in keys})
    return Job(resource, pods, statuses, subject, plan, wishes)


def prompts_text(job: Job, file: Path | None) -> str:
    """Where the prompts come from."""
    source = f"from {file}" if file else f"built-in ({', '.join(prompt_sets.BUILT_IN)})"
    return f"{len(job.wishes.prompts)} {source}"


def check_ready(resource: Json) -> None:
    """Raise Failure unless the deployment is Ready as it is now."""
    found = condition(resource, "Ready")
    if found.get("status") != "True":
        name, namespace = resource["metadata"]["name"], resource["metadata"]["namespace"]
        why = (
            f"{found['reason']}: {found['message']}" if found else "the operator has not looked at its newest spec yet"
        )
        raise Failure(
            f"{name} is not Ready ({why})", f"`kubectl dsd explain {name} -n {namespace}` looks for the cause."
        )


def statuses_of(cluster: Cluster, pods: Sequence[Json]) -> list[Json]:
    """What each engine says; raises Failure where one cannot be asked, or takes no schedule while it runs."""
    found = []
    for asked in ask_engines(cluster, pods):
        if asked.status is None:
            raise Failure(f"pod {asked.name} cannot be asked: {asked.problem}")
        if asked.status.get("mode") != "on":
            reason = (asked.status.get("lastError") or {}).get("message", "its plugin is off")
            raise Failure(f"pod {asked.name} takes a schedule at its start only: {reason}")
        found.append(asked.status)
    return found


def warn_unprepared(plan: Plan, envelope: Json) -> None:
    """A K without its CUDA graph is slower than it could be."""
    if late := sorted(set(plan.ks) - set(envelope.get("preparedTokens") or plan.ks)):
        listed = ", ".join(map(str, late))
        note(f"K={listed} is not in drafter.preparedTokens: it may run without its CUDA graph, slower than it could")


def report_plan(job: Job, prompts: str, dry_run: bool, output: Output) -> None:
    """The plan goes to stdout where it is all that was asked for."""
    if dry_run and output != "table":
        print_data(plan_document(job.subject, job.plan), output)
    else:
        lines = report.plan_lines(job.subject, job.plan, prompts)
        console(stderr=not dry_run).print("\n".join(lines))


def show(results: Results, output: Output, plot: Path | None) -> None:
    """Print the results, and save the picture."""
    if plot is not None:
        save(report.parts(results), plot)
    if output == "table":
        print_tables(*report.parts(results))
    else:
        print_data(document(results), output)
