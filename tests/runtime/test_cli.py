"""The command `dsd` without an engine: what it reads, what it prints, and what it says when something is in the way."""

import io
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from dsd_runtime.cli import describe, output
from dsd_runtime.cli.main import main
from dsd_runtime.config_file import parse
from dsd_runtime.protocol import EngineCoreState, EngineStatus, Envelope, ScheduleState, Versions
from dsd_runtime.schedule import Smoothing, schedule_hash
from tests.runtime.examples import ranges, revision
from tests.runtime.server import free_port

NGRAM = (
    '{"method": "ngram", "num_speculative_tokens": 3, "num_speculative_tokens_per_batch_size": [[1, 8, 3], [9, 64, 0]]}'
)
SCHEDULE = "ranges: [{startBatchSize: 1, endBatchSize: 8, numSpeculativeTokens: 2}]\n"


def dsd(*words: str, text: str = "", env: dict[str, str] | None = None) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, words, input=text, env={"DSD_URL": None, "DSD_TOKEN": None, **(env or {})})


def status(**changes: Any) -> dict[str, Any]:
    """The status of an ngram engine with two ranges and a gap."""
    in_use = ranges((1, 4, 3), (9, 64, 1))
    schedule = ScheduleState(
        revision=revision(7, "dsd-cli/me"), hash=schedule_hash(in_use), source="http", ranges=in_use
    )
    envelope = Envelope(
        method="ngram",
        model_runner="V1",
        num_speculative_tokens=4,
        max_num_seqs=16,
        prepared_tokens=(0, 1, 3, 4),
        allowed_tokens=(0, 1, 2, 3),
    )
    core = EngineCoreState(engine=0, schedule=schedule, num_speculative_tokens=3, steps=52)
    versions = Versions(runtime="0.1.0", vllm="0.32.0")
    found = EngineStatus(mode="on", versions=versions, envelope=envelope, schedule=schedule, engines=(core,))
    return found.dump() | changes


@contextmanager
def answering(code: int, document: Any, version: Any = None, tokens: list[str] | None = None) -> Iterator[str]:
    """A server that gives one answer to everything; `version` to GET /version. `tokens` takes what a PUT carries."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            own = self.path == "/version" and version is not None
            body = (
                document
                if isinstance(document, bytes) and not own
                else json.dumps(version if own else document).encode()
            )
            self.send_response(200 if own else code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if tokens is not None:
                tokens.append(self.headers["Authorization"])
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_help_has_examples_and_exit_codes() -> None:
    for command in ("show", "set"):
        text = dsd("schedule", command, "--help").output
        assert f"dsd schedule {command} " in text.partition("Examples:")[2]
        assert "Exit codes:" in text
    assert "dsd schedule convert" in dsd("schedule", "convert", "--help").output.partition("Examples:")[2]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    assert "_DSD_COMPLETE" in dsd("completion", shell).output


def test_show_as_a_table() -> None:
    with answering(200, status()) as url:
        lines = [" ".join(line.split()) for line in dsd("schedule", "show", "--url", url).output.splitlines()]
    assert f"{url}: schedule" in lines[0]
    assert lines[0].endswith("from HTTP, revision 7 of dsd-cli/me")
    assert "1-4 3 in use" in lines
    assert "5-8 3 between two ranges: keeps the K before" in lines
    assert "9-64 1" in lines
    assert "65 and more 1 above the last range: keeps its K" in lines
    assert "0 3 52 revision 7 of dsd-cli/me" in lines
    assert "method ngram on model runner V1, vLLM 0.32.0, dsd-runtime 0.1.0" in lines
    assert "K up to 4, allowed 0-3, prepared 0, 1, 3, 4; at most 16 requests in a step" in lines
    assert "smoothing: off" in lines


def test_the_example_of_the_page() -> None:
    """docs/how-to/plain-vllm.md shows what the command prints."""
    in_use = ranges((1, 8, 3), (9, 256, 0))
    schedule = ScheduleState(hash=schedule_hash(in_use), source="file", ranges=in_use).dump()
    core = {"engine": 0, "schedule": schedule, "numSpeculativeTokens": 3, "steps": 52}
    allowed = {"preparedTokens": [0, 1, 2, 3], "allowedTokens": [0, 1, 2, 3], "numSpeculativeTokens": 3}
    envelope = status()["envelope"] | allowed | {"maxNumSeqs": 256}
    page = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "plain-vllm.md").read_text()
    with answering(200, status(schedule=schedule, engines=[core], envelope=envelope)) as url:
        printed = dsd("schedule", "show", "--url", url).output.replace(url, "http://localhost:8000")
    assert "\n".join(line.rstrip() for line in printed.splitlines()) in page


def test_show_says_what_is_wrong() -> None:
    time = "2026-01-01T00:00:00Z"
    error = {"source": "http", "message": "no good", "time": time}
    fault = {"source": "file", "message": "gone", "since": time}
    with answering(200, status(lastError=error, faults=[fault])) as url:
        lines = dsd("schedule", "show", "--url", url).output.splitlines()
    assert lines[-2:] == [f"wrong since {time} (file): gone", f"last error (http, {time}): no good"]


def test_show_for_programs_is_the_status_itself() -> None:
    with answering(200, status(somethingNew=1)) as url:
        assert json.loads(dsd("schedule", "show", "--url", url, "-o", "json").output) == status(somethingNew=1)
        assert yaml.safe_load(dsd("schedule", "show", "-o", "yaml", env={"DSD_URL": url}).output)["somethingNew"] == 1


def test_show_where_the_plugin_is_off() -> None:
    off = {"mode": "off", "versions": {"runtime": "0.1.0", "vllm": "9"}, "lastError": {"message": "vLLM 9 is new"}}
    with answering(200, off) as url:
        done = dsd("schedule", "show", "--url", url)
        assert (done.exit_code, "cannot be changed while this server runs: vLLM 9 is new" in done.output) == (0, True)
        done = dsd("schedule", "set", "1-:0", "--url", url, "--dry-run")
        assert (done.exit_code, "changes only with a restart: vLLM 9 is new" in done.output) == (4, True)


@pytest.mark.parametrize(
    ("code", "document", "version", "exit_code", "text"),
    [
        (404, {"detail": "Not Found"}, {"version": "0.32.0"}, 4, "is vLLM 0.32.0 without the DSD plugin"),
        (404, {"detail": "Not Found"}, None, 4, "there is no DSD plugin at http"),
        (502, b"<html>", None, 4, "answers 502"),
        (200, b"hello", None, 4, "answers 200"),
        (
            503,
            {"type": "urn:dsd:problem:engine-unavailable", "detail": "an engine core did not answer"},
            None,
            3,
            "refused (503): an engine core did not answer. Try again in a moment.",
        ),
    ],
)
def test_answers_that_are_no_status(code: int, document: Any, version: Any, exit_code: int, text: str) -> None:
    with answering(code, document, version) as url:
        done = dsd("schedule", "show", "--url", url)
    assert (done.exit_code, text in done.output) == (exit_code, True), done.output


def test_address_of_the_openai_api() -> None:
    with answering(404, {}) as url:
        assert "leave out the /v1" in dsd("schedule", "show", "--url", url + "/v1").output


def test_nobody_listens() -> None:
    done = dsd("schedule", "show", "--url", f"http://127.0.0.1:{free_port()}")
    assert done.exit_code == 3
    assert "Connection refused. Is the server up" in done.output


def test_tls_to_a_server_without_it() -> None:
    with answering(200, status()) as url:
        done = dsd("schedule", "show", "--url", url.replace("http:", "https:"))
    assert (done.exit_code, "If it speaks no TLS, its address begins with http://" in done.output) == (3, True)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x", "http://", "http://[::1", "8000"])
def test_bad_address(url: str) -> None:
    assert dsd("schedule", "show", "--url", url).exit_code == 2


def test_slow_server() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = dsd("schedule", "show", "--url", url, "--timeout", "0.1")
    assert (done.exit_code, "did not answer within 0.1 s" in done.output) == (3, True)


def changed(url: str, *words: str, text: str = "") -> dict[str, Any]:
    """What `set --dry-run` would make the schedule."""
    done = dsd("schedule", "set", *words, "--url", url, "--dry-run", "-o", "json", text=text)
    assert done.exit_code == 0, done.output
    after: dict[str, Any] = json.loads(done.stdout)["after"]
    return after


def test_spellings_of_a_schedule(tmp_path: Path) -> None:
    file = tmp_path / "schedule.yaml"
    expected = parse(SCHEDULE.encode()).dump()
    with answering(200, status()) as url:
        assert changed(url, "1-8:2") == expected
        for content in (SCHEDULE, json.dumps(expected), json.dumps(expected["ranges"]), "[[1, 8, 2]]", "1-8:2"):
            file.write_text(content)
            assert changed(url, "-f", str(file)) == expected, content
            assert changed(url, "-f", "-", text=content) == expected, content


def test_smoothing_stays_unless_it_is_mentioned(tmp_path: Path) -> None:
    file = tmp_path / "schedule.yaml"
    file.write_text(SCHEDULE)
    before = status()
    before["schedule"]["smoothing"] = {"dwellSteps": 5, "marginPercent": 0}
    with answering(200, before) as url:
        assert changed(url, "1-8:2")["smoothing"] == {"dwellSteps": 5, "marginPercent": 0}
        assert "smoothing" not in changed(url, "-f", str(file)), "a file says everything"
        assert "smoothing" not in changed(url, "1-8:2", "--smoothing", "off")
        only = changed(url, "--smoothing", "dwellSteps=20,marginPercent=10")
        assert only["smoothing"] == {"dwellSteps": 20, "marginPercent": 10}
        assert only["ranges"] == before["schedule"]["ranges"]


def test_dry_run_shows_the_change() -> None:
    with answering(200, status()) as url:
        words = ("schedule", "set", "1-8:3,9-16:2,17-:0", "--smoothing", "dwellSteps=20", "--url", url, "--dry-run")
        done = dsd(*words)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "1-8 3 3" in lines
    assert "9-16 1 2" in lines
    assert "17 and more 1 0" in lines
    assert "smoothing: off -> at least 20 steps for each K, margin 0 %" in lines
    assert "nothing was changed" in lines[-1]
    assert "K=2: not prepared at start" in done.stderr


@pytest.mark.parametrize(
    ("words", "exit_code", "text"),
    [
        (["1-8:9"], 5, "K=9 is above the maximum of 4"),
        (["1-8:4"], 5, "K=4 is not possible, only [0, 1, 2, 3]"),
        (["2-8:1"], 2, "must start at 1"),
        (["1-8"], 2, "is no schedule"),
        ([], 2, "give a schedule"),
        (["1-8:1", "-f", "x"], 2, "not both"),
        (["-f", "absent.yaml"], 2, "absent.yaml: cannot be read: No such file"),
        (["1-8:1", "--smoothing", "dwell=3"], 2, "write off, or dwellSteps=N"),
        (["1-8:1", "--smoothing", "marginPercent=51"], 2, "write off, or dwellSteps=N"),
    ],
)
def test_bad_schedules(words: list[str], exit_code: int, text: str) -> None:
    with answering(200, status()) as url:
        done = dsd("schedule", "set", *words, "--url", url, "--dry-run")
    assert (done.exit_code, text in done.output) == (exit_code, True), done.output


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("apiVersion: x/v1\nkind: DSDDeployment", "use kubectl apply"),
        (NGRAM, "see dsd schedule convert"),
        ("ranges:\n- {startBatchSize: 1", "not valid YAML: line 2"),
        ("- {startBatchSize: 1, endBatchSize: 8, numSpeculativTokens: 2}", "did you mean numSpeculativeTokens"),
    ],
)
def test_files_of_another_kind(content: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(content)
    done = dsd("schedule", "set", "-f", str(file), "--dry-run")
    assert (done.exit_code, text in done.output) == (2, True), done.output
    assert str(file) in done.output


def test_a_file_without_its_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(SCHEDULE)
    assert "give it with -f s.yaml" in dsd("schedule", "set", "s.yaml", "--dry-run").output


def test_token_is_needed(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("\n")
    assert "--token-file FILE, or in DSD_TOKEN" in dsd("schedule", "set", "1-:1").output
    assert "is empty" in dsd("schedule", "set", "1-:1", "--token-file", str(empty)).output
    empty.write_text("two words")
    assert "one word" in dsd("schedule", "set", "1-:1", "--token-file", str(empty)).output


def test_token_is_sent_as_it_is_in_the_file(tmp_path: Path) -> None:
    file, seen = tmp_path / "token", list[str]()
    file.write_text("sésame\n", encoding="utf-8")
    with answering(200, status(), tokens=seen) as url:
        dsd("schedule", "set", "1-:1", "--url", url, "--token-file", str(file))
        dsd("schedule", "set", "1-:1", "--url", url, env={"DSD_TOKEN": "plain"})
    assert [token.encode("latin-1") for token in seen] == ["Bearer sésame".encode(), b"Bearer plain"]


def test_schedule_of_another_owner_is_noted() -> None:
    before = status()
    before["schedule"]["revision"]["owner"] = "team-a/demo/uid"
    with answering(200, before) as url:
        assert (
            "team-a/demo/uid, who may set it again" in dsd("schedule", "set", "1-:1", "--url", url, "--dry-run").stderr
        )


def test_somebody_else_changes_it_too() -> None:
    """The PUT is accepted, and the status afterwards shows another schedule."""
    with answering(200, status()) as url:
        done = dsd("schedule", "set", "1-:1", "--url", url, env={"DSD_TOKEN": "t"})
    assert (done.exit_code, "somebody else changes it too" in done.output) == (5, True)


def test_rows_of_open_ranges_and_shared_k() -> None:
    found = list(describe.schedule_rows(ranges((1, 1, 3), (2, 4, 0), (5, 2**31 - 1, 3)), {3: [0], 0: [1, 2]}))
    assert found == [("1", "3", ""), ("2-4", "0", "in use by engine 1, 2"), ("5 and more", "3", "")]


def test_smoothing_in_words() -> None:
    assert describe.smoothing_text(Smoothing()) == "off"


def test_convert_makes_a_file_that_the_engine_reads() -> None:
    done = dsd("schedule", "convert", NGRAM)
    assert [r.triple() for r in parse(done.stdout.encode()).ranges] == [(1, 8, 3), (9, 64, 0)]
    first = done.stdout.splitlines()[0]
    assert first.startswith("# dsd-serve MODEL --dsd-config THIS_FILE --speculative-config '{")
    assert json.loads(first.split("'")[1]) == {"method": "ngram", "num_speculative_tokens": 3}
    assert done.stderr == ""


@pytest.mark.parametrize("source", ["file", "stdin"])
def test_convert_there_and_back(source: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(NGRAM)
    words = ["-f", str(file)] if source == "file" else ["-f", "-"]
    found = json.loads(dsd("schedule", "convert", *words, "-o", "json", text=NGRAM).stdout)
    file.write_text(output.to_yaml(found["schedule"]))
    rest = json.dumps(found["speculativeConfig"])
    done = dsd("schedule", "convert", "--to", "vllm", "-f", str(file), "--speculative-config", rest)
    assert json.loads(done.stdout) == json.loads(NGRAM)


def test_convert_says_what_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(SCHEDULE + "smoothing: {dwellSteps: 3}\nauth: {tokenFile: t}\n")
    done = dsd(
        "schedule",
        "convert",
        "--to",
        "vllm",
        "-f",
        str(file),
        "--speculative-config",
        '{"method": "mtp", "num_speculative_tokens": 2}',
    )
    assert done.stderr == "note: left out, a stock vLLM has no such thing: smoothing, auth\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "one argument"),
        (["{}", "-f", "x"], "one argument"),
        (["{'method': 'mtp'}"], "this is Python"),
        (['{"method": "EAGLE3", "x": 1}'], "this cannot be converted:\n  x: "),
        (["-f", "absent.json"], "absent.json: cannot be read: No such file"),
        (["--to", "vllm", "{}"], "give it with -f"),
        (["--to", "vllm", "-f", "x"], "a schedule file holds no method"),
    ],
)
def test_convert_refuses(words: list[str], text: str) -> None:
    done = dsd("schedule", "convert", *words)
    assert (done.exit_code, text in done.stderr) == (2, True), done.output
    assert done.stdout == ""


def test_lines_are_not_cut_for_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    output.print_tables(output.table(("A",), [("x" * 300,)]), "y" * 300)
    assert stream.getvalue().splitlines()[-3].strip() == "x" * 300
    assert stream.getvalue().splitlines()[-1] == "y" * 300
