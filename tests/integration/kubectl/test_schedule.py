"""`kubectl dsd schedule`: what is shown is what the pods use; a change reaches them, and never undoes another's."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dsd.cluster import Cluster
from kubectl_dsd.errors import ApiFailure
from tests.integration.kubectl.tool import Live, squeezed
from tests.integration.world import NAME, ranges

pytestmark = pytest.mark.integration


def in_resource(live: Live) -> list[Any]:
    """The schedule that the API server holds."""
    found: list[Any] = live.world.resource()["spec"]["schedule"]
    return found


def test_set_reaches_every_pod(live: Live) -> None:
    done = live.dsd("schedule", "set", NAME, "1-4:2,5-:0")
    assert [engine.triples() for engine in live.engines] == [[(1, 4, 2), (5, 2**31 - 1, 0)]] * 2
    assert "2 of 2 pods after" in done.stdout
    assert "5-8 3 0" in squeezed(done.stdout)
    assert squeezed(done.stderr)[-1] == "2 of 2 pods use the schedule"


def test_set_for_programs(live: Live) -> None:
    before = in_resource(live)
    found = live.dsd.json("schedule", "set", NAME, "1-8:3,9-:1")
    assert found["changed"] is True
    assert found["before"]["ranges"] == before
    assert found["after"]["ranges"] == in_resource(live) == ranges([(1, 8, 3), (9, 2**31 - 1, 1)])
    assert (found["pods"]["applied"], found["pods"]["total"], found["pods"]["late"]) == (2, 2, [])


def test_a_file_comes_back_as_it_was_shown(live: Live, tmp_path: Path) -> None:
    live.dsd("schedule", "set", NAME, "1-2:3,3-:1", "--smoothing", "dwellSteps=7,marginPercent=5")
    exported = live.dsd("schedule", "show", NAME, "--export").stdout
    (tmp_path / "schedule.yaml").write_text(exported)
    live.dsd("schedule", "set", NAME, "1-:0", "--smoothing", "off")
    assert "smoothing" not in live.world.resource()["spec"]
    live.dsd("schedule", "set", NAME, "-f", str(tmp_path / "schedule.yaml"))
    assert yaml.safe_load(exported)["ranges"] == in_resource(live)
    assert live.world.resource()["spec"]["smoothing"] == {"dwellSteps": 7, "marginPercent": 5}
    assert [engine.triples()[0] for engine in live.engines] == [(1, 2, 3)] * 2


def test_a_manifest_and_stdin_are_files_too(live: Live) -> None:
    manifest = {**live.world.resource(), "spec": {"schedule": ranges([(1, 16, 2)])}}
    live.dsd("schedule", "set", NAME, "-f", "-", given=yaml.safe_dump(manifest))
    assert in_resource(live) == ranges([(1, 16, 2)])


def test_a_dry_run_changes_nothing(live: Live) -> None:
    before = live.world.resource()["metadata"]["generation"]
    found = live.dsd.json("schedule", "set", NAME, "1-:1", "--dry-run=server")
    assert (found["dryRun"], found["changed"]) == (True, False)
    assert live.world.resource()["metadata"]["generation"] == before


@pytest.mark.parametrize(
    ("schedule", "code", "words"),
    [
        ("1-8:4", 1, "K=4 is above the maximum of 3"),
        ("2-8:1", 2, "it must start at 1"),
        ("1-8:3,4-9:1", 2, "overlaps"),
        ("nonsense", 2, "nonsense"),
    ],
)
def test_what_is_impossible_is_said_and_not_sent(live: Live, schedule: str, code: int, words: str) -> None:
    before = in_resource(live)
    assert words in live.dsd("schedule", "set", NAME, schedule, code=code).stderr
    assert in_resource(live) == before


def test_what_the_api_server_refuses_comes_in_its_rule_s_words(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_dsd.schedule.patching.refuse_impossible", lambda *_: None)
    monkeypatch.setattr("kubectl_dsd.schedule.patching.engine_refusals", lambda *_: [])
    said = live.dsd("schedule", "set", NAME, "1-8:4", code=1).stderr
    assert "the API server refuses this schedule" in said
    assert "numSpeculativeTokens" in said
    assert "{" not in said, "not the value that the API server puts before its rule"


def test_a_change_at_the_same_moment_is_not_undone(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody writes between our look and our patch: the API server answers 409, and theirs stays."""
    patch = Cluster.patch

    def late(self: Cluster, *arguments: Any, **options: Any) -> Any:
        live.world.schedule([(1, 5, 3)])
        return patch(self, *arguments, **options)

    monkeypatch.setattr(Cluster, "patch", late)
    said = live.dsd("schedule", "set", NAME, "1-6:2", code=1).stderr
    assert "somebody else changed the schedule" in said
    assert "1-5:3" in said
    assert in_resource(live) == ranges([(1, 5, 3)])


def test_another_change_at_the_same_moment_is_no_conflict(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, times = Cluster.patch, iter(range(10))

    def late(self: Cluster, *arguments: Any, **options: Any) -> Any:
        if next(times) < 2:
            live.world.kubectl("annotate", "dsd", NAME, f"example.org/try={next(times)}", "--overwrite")
        return patch(self, *arguments, **options)

    monkeypatch.setattr(Cluster, "patch", late)
    live.dsd("schedule", "set", NAME, "1-6:2")
    assert in_resource(live) == ranges([(1, 6, 2)])


def test_a_change_that_nobody_answered_may_have_been_made(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was: the answer alone is lost."""
    patch = Cluster.patch

    def unheard(self: Cluster, *arguments: Any, **options: Any) -> Any:
        patch(self, *arguments, **options)
        raise ApiFailure(0, "the API server does not answer in time")

    monkeypatch.setattr(Cluster, "patch", unheard)
    said = live.dsd("schedule", "set", NAME, "1-11:2", code=1).stderr
    assert "does not answer in time; the schedule may have been changed all the same" in said
    assert in_resource(live) == ranges([(1, 11, 2)])


def test_who_would_set_it_back_is_named(live: Live) -> None:
    resource = live.world.resource()
    manifest = {
        "apiVersion": resource["apiVersion"],
        "kind": resource["kind"],
        "metadata": {"name": NAME},
        "spec": {"schedule": ranges([(1, 7, 1)])},
    }
    apply = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    live.world.kubectl(*apply, "--field-manager=argocd-controller", given=json.dumps(manifest))
    assert "Argo CD (field manager argocd-controller)" in live.dsd("schedule", "set", NAME, "1-7:2").stderr
    live.world.kubectl(*apply, "--field-manager=somebody", given=json.dumps(manifest))
    assert (
        "the field manager somebody owns the schedule by server-side apply"
        in live.dsd("schedule", "set", NAME, "1-7:2").stderr
    )
    assert live.dsd("schedule", "set", NAME, "1-7:3").stderr.count("note:") == 0, "now it is ours"


def test_a_pod_that_does_not_answer_is_named(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its engine answers nobody for a while; then the file has brought the schedule, and it says so itself."""
    monkeypatch.setattr("kubectl_dsd.schedule.change.HURRIED_SECONDS", 0.3)
    monkeypatch.setattr("kubectl_dsd.schedule.waiting.HURRIED_SECONDS", 0.3)
    engine = live.engines[0]
    engine.silent.set()
    try:
        said = live.dsd("schedule", "set", NAME, "1-9:1", "--timeout", "2", code=1)
        assert "1 of 2 pods use it" in said.stderr
        assert live.pods[0] in said.stderr
    finally:
        engine.silent.clear()
    engine.read_file()
    assert live.dsd.json("schedule", "set", NAME, "1-9:1")["pods"]["applied"] == 2


def test_diff_names_what_differs(live: Live, tmp_path: Path) -> None:
    live.dsd("schedule", "set", NAME, "1-8:3,9-:1")
    assert live.dsd.json("schedule", "diff", NAME, "--exit-code")["same"] is True
    (tmp_path / "f.yaml").write_text("[[1, 8, 3], [9, 64, 0]]")
    found = live.dsd.json("schedule", "diff", NAME, "-f", str(tmp_path / "f.yaml"), "--exit-code", code=3)
    assert found["same"] is False
    assert [pod["inSync"] for pod in found["pods"]] == [True, True]
    shown = live.dsd("schedule", "diff", NAME, "-f", str(tmp_path / "f.yaml")).stdout
    assert "1-8 3 3" in squeezed(shown)
    assert "9 and more 1 0" in squeezed(shown)


@pytest.mark.parametrize("content", ["[[1, 8, 3], [9, 64, 1]]", "bestSchedule: {rows}"])
def test_diff_says_what_set_would_do_with_smoothing(live: Live, content: str) -> None:
    """A file that does not speak of smoothing leaves it as it is; one that says everything does not."""
    live.dsd("schedule", "set", NAME, "1-8:3,9-64:1", "--smoothing", "dwellSteps=7,marginPercent=5")
    given = content.format(rows=json.dumps(in_resource(live)))
    try:
        live.dsd("schedule", "set", NAME, "-f", "-", given=given)
        assert live.world.resource()["spec"]["smoothing"] == {"dwellSteps": 7, "marginPercent": 5}
        assert live.dsd.json("schedule", "diff", NAME, "-f", "-", given=given)["same"] is True
        whole = yaml.safe_dump({"ranges": in_resource(live)})
        assert live.dsd.json("schedule", "diff", NAME, "-f", "-", given=whole)["same"] is False
    finally:
        live.dsd("schedule", "set", NAME, "1-8:3,9-:1", "--smoothing", "off")


def test_diff_shows_the_pod_that_lags(live: Live) -> None:
    live.dsd("schedule", "set", NAME, "1-8:2")
    lagging = live.engines[1]
    used, lagging.state.current = lagging.state.current, lagging.state._history[0]
    try:
        found = live.dsd.json("schedule", "diff", NAME)
        assert found["same"] is False
        by_name = {pod["name"]: pod for pod in found["pods"]}
        assert by_name[live.pods[1]]["inSync"] is False
        assert by_name[live.pods[0]]["inSync"] is True
        assert f"K {live.pods[1]}" in live.dsd("schedule", "diff", NAME).stdout
    finally:
        lagging.state.current = used


def test_history_tells_what_was_used_and_what_it_cannot_know(live: Live) -> None:
    live.dsd("schedule", "set", NAME, "1-3:1")
    live.dsd("schedule", "set", NAME, "1-3:2")
    found = live.dsd.json("schedule", "history", NAME)
    last, before = found["changes"][-1], found["changes"][-2]
    assert [r["numSpeculativeTokens"] for r in (*before["ranges"], *last["ranges"])] == [1, 2]
    assert [pod["name"] for pod in last["pods"]] == live.pods
    assert before["time"] <= last["time"]
    assert last["revision"]["number"] > before["revision"]["number"]
    assert len(found["limits"]) == 2
    assert "remembers since its start" in found["limits"][0]
    assert "as asked for now" in live.dsd("schedule", "history", NAME).stdout.splitlines()[len(found["changes"])]


def test_a_name_that_is_not_there(live: Live) -> None:
    said = live.dsd("schedule", "show", "dmeo", code=1).stderr
    assert (
        said == f"Error: there is no DSDDeployment 'dmeo' in namespace '{live.world.namespace}'\nDid you mean demo?\n"
    )
