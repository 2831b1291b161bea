"""The command as a whole: its parts load, it completes, and its failures are words."""

import json
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from kubectl_dsd.cluster import Cluster
from kubectl_dsd.errors import Failure
from kubectl_dsd.kubeconfig import Target
from kubectl_dsd.main import COMMANDS, LazyGroup, cli, main
from kubectl_dsd.output import plain
from kubectl_dsd.profile.signals import Interrupted


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """One with two contexts and an address where nothing listens."""
    contexts = [
        {"name": name, "context": {"cluster": "c", "user": "u", "namespace": f"{name}-ns"}} for name in ("dev", "prod")
    ]
    path = tmp_path / "config"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": contexts,
                "current-context": "dev",
            }
        )
    )
    return path


def test_help_names_every_command() -> None:
    shown = CliRunner().invoke(cli, ["--help"])
    assert shown.exit_code == 0
    assert all(f"  {name} " in shown.output for name in COMMANDS)


@pytest.mark.parametrize("arguments", [[], ["--bad"], ["nonsense"]])
def test_a_wrong_command_line_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_signal_that_nobody_caught_ends_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise Interrupted(15)

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: click.Command("x", callback=interrupted))
    with pytest.raises(SystemExit) as ended:
        main(["x"])
    assert ended.value.code == 128 + 15


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_of_a_command_counts(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it ends by sys.exit or by click's own exit."""
    for leave in (lambda: click.get_current_context().exit(code), lambda: sys.exit(code)):
        monkeypatch.setattr(LazyGroup, "get_command", lambda *_, leave=leave: click.Command("x", callback=leave))
        with pytest.raises(SystemExit) as ended:
            main(["x"])
        assert ended.value.code == code


def test_a_failure_is_a_line_and_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    Failure("it broke", "Mend it.").show()
    assert capsys.readouterr().err == "Error: it broke\nMend it.\n"


def test_what_a_terminal_would_obey_is_written_out() -> None:
    assert plain("a\x1b[31mb\x07 ü\n") == "a\\x1b[31mb\\x07 ü\n"


def test_a_defect_of_ours_ends_in_words_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.delenv("DSD_DEBUG", raising=False)
    monkeypatch.setattr("kubectl_dsd.options.Cluster.connect", broken)
    with pytest.raises(SystemExit) as ended:
        main(["status"])
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert "this is a defect of kubectl dsd: ZeroDivisionError: division by zero" in said
    assert "DSD_DEBUG=1" in said
    assert "Traceback" not in said


def test_options_may_stand_before_and_after(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Target] = []

    def connect(target: Target) -> None:
        seen.append(target)
        raise Failure("enough")

    monkeypatch.setattr("kubectl_dsd.options.Cluster.connect", connect)
    for words in (
        ["--context", "prod", "--request-timeout", "60", "status", "-n", "x", "--kubeconfig", str(kubeconfig)],
        ["-n", "ignored", "--request-timeout", "7", *_last(kubeconfig)],
        ["--kubeconfig", str(kubeconfig), "--context", "prod", "-n", "x", "--request-timeout", "60", "status"],
        [
            "--request-timeout",
            "60",
            "--kubeconfig",
            str(kubeconfig),
            "--context=prod",
            "schedule",
            "show",
            "-nx",
            "demo",
        ],
    ):
        CliRunner().invoke(cli, words)
    assert seen == [Target(str(kubeconfig), "prod", "x", 60.0)] * 4


def _last(kubeconfig: Path) -> list[str]:
    """All options after the sub-command."""
    return ["status", "-n", "x", "--context", "prod", "--kubeconfig", str(kubeconfig), "--request-timeout", "60"]


def test_an_answer_is_waited_for_as_long_as_is_said(kubeconfig: Path) -> None:
    assert Cluster.connect(Target(str(kubeconfig), timeout=60)).timeout == 60
    assert Cluster.connect(Target(str(kubeconfig))).timeout == 15


def test_contexts_are_completed(kubeconfig: Path) -> None:
    asked = ShellComplete(cli, {}, "kubectl-dsd", "_KUBECTL_DSD_COMPLETE")
    found = asked.get_completions(["--kubeconfig", str(kubeconfig), "status", "--context"], "p")
    assert [item.value for item in found] == ["prod"]


def test_completion_is_silent_where_there_is_no_cluster(kubeconfig: Path) -> None:
    asked = ShellComplete(cli, {}, "kubectl-dsd", "_KUBECTL_DSD_COMPLETE")
    assert asked.get_completions(["--kubeconfig", str(kubeconfig), "explain"], "d") == []
