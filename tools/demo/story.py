"""The demo as a story in chapters, and its removal. Each chapter can run again: a second `make demo` works."""

import json
import shlex
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from dsd_runtime.schedule import from_triples, schedule_hash, to_triples
from tools.cluster import api
from tools.cluster.errors import ClusterError
from tools.demo import chat, earnings, parts, progress, terminal
from tools.demo.commands import forwarded, kubectl
from tools.demo.names import NAMESPACE, RESOURCE, SAMPLE
from tools.testbed import install
from tools.testbed.engine import Engine, in_use
from tools.testbed.handle import Handle, identity
from tools.testbed.kube import Kube
from tools.testbed.manifests import ranges_of

_CHAPTERS: Final = 8
_QUESTION: Final = "What is the capital of France, and what is it known for?"
CONCURRENCY: Final = 4
_REQUESTS: Final = 12
_CHANGE_SECONDS: Final = 120.0

NEW_SCHEDULE: Final = from_triples([(1, 2, 4), (3, 256, 1)])
"""What the demo changes to; differs from the sample's at the load's concurrency."""


def up() -> None:
    """Tell the story; leaves everything running."""
    _foundations()
    handle = Handle(Kube(api.full_node_kubeconfig()), NAMESPACE, RESOURCE)
    _deploy(handle)
    with forwarded(NAMESPACE, f"pod/{handle.pod()['metadata']['name']}", 8000) as url:
        model = chat.model_name(url)
        _talk(url, model)
        before = _load(5, "A little load, and what each K earned", url, model)
        _change(handle, url, model)
        after = _load(7, "The same load under the new schedule", url, model)
    _compare(before, after)
    _farewell(model)


def down() -> None:
    """Remove what the demo made: with its own cluster everything, on another one all but the CRD."""
    if not parts.own_cluster():
        parts.remove_installation()
        terminal.say("The demo is gone. The CRD stays, as the cluster is not ours. To remove it and all its resources:")
        terminal.shown("kubectl delete crd dsddeployments.dsd-operator.io")
        return
    parts.cluster_tool("down")
    terminal.say("The demo and its cluster are gone. Builds, images and the model stay cached for the next time.")


def _foundations() -> None:
    terminal.heading(1, _CHAPTERS, "A Kubernetes cluster and the images")
    if parts.own_cluster():
        parts.cluster_tool("up")
    parts.cluster_tool("images")
    terminal.heading(2, _CHAPTERS, "The operator, from its Helm chart")
    parts.install_chart()


def _deploy(handle: Handle) -> None:
    terminal.heading(3, _CHAPTERS, "A DSDDeployment: SmolLM2-135M-Instruct with an n-gram drafter")
    parts.apply_model()
    kubectl("apply", "--namespace", NAMESPACE, "--filename", SAMPLE)
    seconds = progress.wait_ready(handle)
    terminal.result(f"Ready after {seconds:.0f} s.")
    terminal.result(kubectl("get", "dsd", RESOURCE, "--namespace", NAMESPACE))


def _talk(url: str, model: str) -> None:
    terminal.heading(4, _CHAPTERS, "A chat completion")
    terminal.result(f"{terminal.paint('you:', 'bold')} {_QUESTION}")
    terminal.result(f"{terminal.paint('model:', 'bold')} {chat.ask(url, model, _QUESTION, 80)}")


def _load(chapter: int, title: str, url: str, model: str) -> earnings.Reading:
    terminal.heading(chapter, _CHAPTERS, title)
    engine = Engine(url)
    before = earnings.Reading.of(engine.metrics())
    started = time.monotonic()
    chat.load(url, model, CONCURRENCY, _REQUESTS)
    terminal.result(f"{_REQUESTS} chats, {CONCURRENCY} at a time: {time.monotonic() - started:.1f} s")
    grown = earnings.Reading.of(engine.metrics()).since(before)
    earnings.show(grown)
    return grown


def _change(handle: Handle, url: str, model: str) -> None:
    terminal.heading(6, _CHAPTERS, "Change the schedule in place, while requests run")
    engine, pod = Engine(url), identity(handle.pod())
    terminal.result(f"in use: {_describe(engine)}")
    with ThreadPoolExecutor(1) as background:
        load = background.submit(chat.load, url, model, CONCURRENCY, _REQUESTS)
        took, of_kubectl = _patch(engine)
        load.result()
    handle.wait_applied(NEW_SCHEDULE)
    terminal.result(f"in use: {_describe(engine)}")
    text = f"In use {took * 1000:.0f} ms after kubectl was started, of which kubectl took {of_kubectl * 1000:.0f} ms."
    terminal.result(terminal.paint(text, "green"))
    terminal.result(kubectl("get", "dsd", RESOURCE, "--namespace", NAMESPACE))
    now = identity(handle.pod())
    if now != pod:
        raise ClusterError(f"the pod changed: {pod} before, {now} after")
    terminal.result(f"Same pod: UID {now[0]}, {now[1]} restarts. The {_REQUESTS} chats that ran meanwhile ended well.")


def _patch(engine: Engine) -> tuple[float, float]:
    """Change the schedule by kubectl; returns the seconds until the engine used it, and those that kubectl took."""
    patch = json.dumps({"spec": {"schedule": ranges_of(NEW_SCHEDULE)}})
    started = time.monotonic()
    kubectl("patch", "dsd", RESOURCE, "--namespace", NAMESPACE, "--type", "merge", "--patch", patch)
    patched = time.monotonic()
    _wait_in_use(engine)
    return time.monotonic() - started, patched - started


def _describe(engine: Engine) -> str:
    state = engine.status().schedule
    if state is None:
        return "nothing yet"
    ranges = ", ".join(f"{start}-{end}: K={k}" for start, end, k in to_triples(state.ranges))
    return f"{ranges}  (hash {state.hash}, from {state.source})"


def _wait_in_use(engine: Engine) -> None:
    """Wait until every engine core uses the new schedule."""
    wanted, started = {schedule_hash(NEW_SCHEDULE)}, time.monotonic()
    while in_use(engine.status()) != wanted:
        if time.monotonic() - started > _CHANGE_SECONDS:
            raise ClusterError(f"the engine does not use the new schedule: {engine.status().dump()}")
        time.sleep(0.01)


def _compare(before: earnings.Reading, after: earnings.Reading) -> None:
    terminal.heading(8, _CHAPTERS, "Before and after")
    ks = [sorted(reading.counters["dsd_steps_total"], key=int) for reading in (before, after)]
    terminal.result(f"K verified before: {', '.join(ks[0])}; after: {', '.join(ks[1])}. No restart, no lost request.")
    terminal.result("K=0 are steps with nothing to verify yet: a prompt, or the first step after one.")


def _farewell(model: str) -> None:
    path = shlex.quote(str(api.program("kubectl").parent))
    terminal.say(f"\n{terminal.paint('Everything keeps running. To play on:', 'bold')}")
    terminal.shown(f"export KUBECONFIG={shlex.quote(str(api.full_node_kubeconfig()))} PATH={path}:$PATH")
    terminal.shown(f"kubectl --namespace {NAMESPACE} edit dsd {RESOURCE}    # change spec.schedule; :wq")
    terminal.shown(f"kubectl --namespace {NAMESPACE} get dsd {RESOURCE} --watch")
    terminal.shown(f"kubectl --namespace {NAMESPACE} port-forward service/{RESOURCE} 8000 &")
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hello!"}]})
    terminal.shown(
        f"curl -s localhost:8000/v1/chat/completions -H 'Content-Type: application/json' -d {shlex.quote(body)}"
    )
    terminal.shown("curl -s localhost:8000/metrics | grep ^dsd_")
    terminal.shown(f"kubectl --namespace {install.NAMESPACE} logs deployment/{install.RELEASE}    # the operator")
    terminal.say(f"\n{terminal.paint('To stop and remove it:', 'bold')} make demo-down")
