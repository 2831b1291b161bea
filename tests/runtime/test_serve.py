"""The command line of `dsd-serve`: what it takes, what it passes on, and what it says when something is wrong."""

import importlib.util
import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dsd_runtime import compat, listen, metrics_folder, serve
from dsd_runtime.config_file import ConfigFileError
from dsd_runtime.protocol import LEAVING_ENV
from dsd_runtime.usage import UsageError

SPECULATIVE = '{"method": "ngram", "num_speculative_tokens": 3}'
DRAIN = ["--shutdown-timeout", "30"]
"""What is added where the user says nothing about it, and vLLM is one that we know."""

SCHEDULE = "ranges: [{startBatchSize: 1, endBatchSize: 8, numSpeculativeTokens: 3}]\n"


@pytest.fixture
def schedule(tmp_path: Path) -> str:
    """A config file that is fine."""
    path = tmp_path / "schedule.yaml"
    path.write_text(SCHEDULE)
    return str(path)


def arguments(*words: str) -> list[str]:
    """What vLLM gets."""
    return serve.arguments_for(serve.split(words))


def test_own_options_are_taken_out(schedule: str) -> None:
    for words in (["--dsd-config", schedule], [f"--dsd-config={schedule}"]):
        options = serve.split(["m", *words, "--dsd-prepared-tokens", "0,3", "--port", "1"])
        assert options.vllm == ("m", "--port", "1")
        assert (options.config, options.prepared) == (Path(schedule), "0,3")


@pytest.mark.parametrize("words", [["m", "--dsd-config"], ["m", "--dsd-config="], ["m", "--dsd-confg", "x"]])
def test_bad_own_options(words: Sequence[str]) -> None:
    with pytest.raises(UsageError, match="--dsd-conf"):
        serve.split(words)


@pytest.mark.parametrize("tokens", ["x", "", "1,,2", "-1,2", "0,129", "1.5"])
def test_bad_prepared_tokens(tokens: str) -> None:
    with pytest.raises(UsageError, match="--dsd-prepared-tokens"):
        arguments("m", "--host", "h", f"--dsd-prepared-tokens={tokens}")


def test_config_of_vllm_in_one_word_becomes_two() -> None:
    """vLLM ignores `--config=FILE` without a word: argparse takes it, and nobody opens the file."""
    assert serve.split(["m", "--config=a=b.yaml"]).vllm == ("m", "--config", "a=b.yaml")


def test_vllm_still_ignores_the_config_file_in_one_word() -> None:
    """The day vLLM reads it, the line that splits it can go."""
    spec = importlib.util.find_spec("vllm")
    assert spec is not None
    assert spec.submodule_search_locations
    text = Path(spec.submodule_search_locations[0], "utils", "argparse_utils.py").read_text()
    assert 'if "--config" in args:' in text


def test_no_model() -> None:
    with pytest.raises(UsageError, match="name a model"):
        arguments()


@pytest.mark.parametrize(
    "words",
    [
        ["--host", "1.2.3.4"],
        ["--host=1.2.3.4"],
        ["--hos", "1.2.3.4"],
        ["--uds", "/tmp/x"],
    ],
)
def test_host_of_the_user_stays(words: list[str]) -> None:
    assert arguments("m", *words) == ["m", *words, *DRAIN]


def test_host_in_the_config_file_of_vllm_stays(tmp_path: Path) -> None:
    path = tmp_path / "vllm.yaml"
    path.write_text("host: 1.2.3.4\n")
    assert arguments("m", "--config", str(path)) == ["m", "--config", str(path), *DRAIN]
    path.write_text("port: 1234\n")
    assert arguments("m", "--config", str(path))[-2] == "--host"


def test_config_file_of_vllm_that_is_no_text_is_left_to_vllm(tmp_path: Path) -> None:
    path = tmp_path / "vllm.yaml"
    path.write_bytes(b"host: \xff\xfe")
    assert arguments("m", "--config", str(path))[-2] == "--host"


def test_host_goes_before_the_end_of_the_options() -> None:
    assert arguments("--seed", "1", "--", "m") == ["--seed", "1", *DRAIN, "--host", listen.default_host(), "--", "m"]


@pytest.mark.parametrize("words", [["--shutdown-timeout", "0"], ["--shutdown_timeout=5"], ["--shutdown-t", "5"]])
def test_time_to_shut_down_of_the_user_stays(words: list[str]) -> None:
    assert arguments("m", "--host", "h", *words) == ["m", "--host", "h", *words]


def test_time_to_shut_down_in_the_config_file_of_vllm_stays(tmp_path: Path) -> None:
    path = tmp_path / "vllm.yaml"
    path.write_text("shutdown-timeout: 3\nhost: h\n")
    assert arguments("m", "--config", str(path)) == ["m", "--config", str(path)]


def listens_on_ipv4(host: str) -> bool:
    """Whether a socket that vLLM would bind to `host` can be reached over IPv4."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.bind((host, 0))
        server.listen()
        with socket.create_connection(("127.0.0.1", server.getsockname()[1]), timeout=5):
            return True


def test_default_host_is_reachable_over_ipv4() -> None:
    assert listens_on_ipv4(listen.default_host())


class NoIPv6(socket.socket):
    """A kernel without IPv6."""

    def __init__(self, family: int = -1, *rest: int) -> None:
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")
        super().__init__(family, *rest)


class OnlyIPv6(socket.socket):
    """A kernel with net.ipv6.bindv6only=1."""

    def __init__(self, family: int = -1, *rest: int) -> None:
        super().__init__(family, *rest)
        if family == socket.AF_INET6:
            self.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)


def test_default_host_without_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", NoIPv6)
    assert listen.default_host() == "0.0.0.0"


@pytest.mark.skipif(not socket.has_ipv6, reason="this Python has no IPv6")
def test_default_host_where_ipv6_sockets_shut_ipv4_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", OnlyIPv6)
    assert listen.default_host() == "0.0.0.0"


def test_missing_config_file() -> None:
    with pytest.raises(ConfigFileError, match=r"absent\.yaml: cannot be read"):
        arguments("m", "--dsd-config", "absent.yaml")


@pytest.mark.parametrize(
    ("text", "speculative", "hint"),
    [
        (SCHEDULE, '{"num_speculative_tokens": 2}', "above the maximum of 2"),
        (SCHEDULE, '{"num_speculative_tokens": "2"}', "above the maximum of 2"),
        (SCHEDULE, '{"method": "Ngram"}', "has no method 'Ngram'; did you mean ngram"),
        (SCHEDULE, '{"num_speculative_tokns": 2}', "did you mean num_speculative_tokens"),
        (SCHEDULE, '{"ngram_prompt_lookup_max": 2}', "calls it prompt_lookup_max"),
        (SCHEDULE.replace("1,", "2,", 1), SPECULATIVE, "must start at 1"),
        (SCHEDULE, '{"num_speculative_tokens_per_batch_size": [[1, 8, 3]]}', "given twice"),
        (SCHEDULE, "{", "not valid JSON"),
        (SCHEDULE, "[]", "must be a JSON object"),
    ],
)
def test_schedule_that_the_engine_would_refuse(text: str, speculative: str, hint: str, tmp_path: Path) -> None:
    path = tmp_path / "schedule.yaml"
    path.write_text(text)
    for words in (["--speculative-config", speculative], [f"--speculative_config={speculative}"], ["-sc", speculative]):
        with pytest.raises(UsageError, match=hint):
            arguments("m", "--dsd-config", str(path), *words)


def test_table_never_reaches_the_start_up_arguments(schedule: str) -> None:
    found = arguments("m", "--dsd-config", schedule, "--speculative-config", SPECULATIVE, "--host", "h")
    assert found == ["m", "--speculative-config", SPECULATIVE, "--host", "h", *DRAIN]


@pytest.fixture
def unknown_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate as it is for a vLLM that the plugin does not know."""
    monkeypatch.setattr(compat, "gate", lambda: compat.Gate("off", "9.9.9", "vLLM 9.9.9 is not known"))


TABLE = {"num_speculative_tokens_per_batch_size": [[1, 8, 3]]}


@pytest.mark.usefixtures("unknown_vllm")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--speculative-config", SPECULATIVE], json.loads(SPECULATIVE)),
        ([f"--speculative-config={SPECULATIVE}"], json.loads(SPECULATIVE)),
        (["-sc", SPECULATIVE], json.loads(SPECULATIVE)),
        (
            ["--speculative-config.method", "ngram", "--speculative_config.num_speculative_tokens=3"],
            {"method": "ngram", "num_speculative_tokens": 3},
        ),
    ],
)
def test_unknown_vllm_gets_the_schedule_as_its_own_table(schedule: str, given: list[str], expected: object) -> None:
    found = arguments("m", "--dsd-config", schedule, *given, "--host", "h", "--", "v")
    assert (found[:3], found[-2:]) == (["m", "--host", "h"], ["--", "v"])
    (name, value) = found[3:-2]
    assert name == "--speculative-config"
    assert json.loads(value) == {**TABLE, **expected}  # type: ignore[dict-item]


@pytest.mark.usefixtures("unknown_vllm")
def test_unknown_vllm_with_the_short_options(schedule: str) -> None:
    """vLLM adds them to the JSON, and refuses a key that is in both."""
    given = ["--spec-method", "ngram", "--spec-tokens", "3"]
    assert arguments("m", "--dsd-config", schedule, *given, "--host", "h") == [
        *["m", *given, "--host", "h", "--speculative-config", json.dumps(TABLE)]
    ]


@pytest.mark.usefixtures("unknown_vllm")
def test_unknown_vllm_without_speculation(schedule: str) -> None:
    assert arguments("m", "--dsd-config", schedule, "--host", "h") == ["m", "--host", "h"]


@pytest.mark.parametrize(
    ("existing", "expected"),
    [("", "dsd,dsd_http"), ("mine,other", "mine,other,dsd,dsd_http"), ("dsd", "dsd,dsd_http")],
)
def test_plugins_are_joined(existing: str, expected: str) -> None:
    assert serve.plugin_list(existing) == expected


def test_allow_list_keeps_what_vllm_would_load_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plugin:
        def __init__(self, name: str) -> None:
            self.name = name

    found = {"vllm.platform_plugins": [Plugin("npu")], "vllm.general_plugins": [Plugin("dsd"), Plugin("lora")]}
    monkeypatch.setattr(serve, "entry_points", lambda group: found.get(group, []))
    assert serve.plugin_list(None) == "dsd,lora,npu,dsd_http"


def test_metrics_folder_is_made_and_wiped(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    environment = {"PROMETHEUS_MULTIPROC_DIR": str(folder)}
    assert metrics_folder.prepare(environment) == str(folder)
    (folder / "counter_1.db").touch()
    (folder / "notes.txt").touch()
    metrics_folder.prepare(environment)
    assert [p.name for p in folder.iterdir()] == ["notes.txt"], "only what prometheus_client writes is removed"


class Became(Exception):  # noqa: N818 - what happens where a process would turn into another one
    """`vllm serve` would run now."""


def test_a_notice_to_leave_that_an_earlier_life_got_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that the kubelet starts again in its pod was told to leave before; else every response would ask its
    client to close the connection, and there would be no time to drain."""
    notice = tmp_path / "leaving"
    for left in (notice, tmp_path / "leaving.7"):
        left.touch()
    monkeypatch.setenv(LEAVING_ENV, str(notice))
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / "metrics"))

    def become(*_: object) -> None:
        raise Became

    monkeypatch.setattr("os.execve", become)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
    with pytest.raises(Became):
        serve.run(["m", "--host", "127.0.0.1", "--port", port])
    assert [path.name for path in tmp_path.iterdir()] == ["metrics"]


def test_metrics_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="PROMETHEUS_MULTIPROC_DIR"):
        metrics_folder.prepare({"PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "file" / "x")})


def test_environment(schedule: str, tmp_path: Path) -> None:
    given = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "m"), "DSD_PREPARED_TOKENS": "7", "X": "y", "VLLM_PLUGINS": "a"}
    found = serve.environment_for(serve.split(["m", "--dsd-config", schedule]), given)
    assert found == {
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "m"),
        "X": "y",
        "VLLM_PLUGINS": "a,dsd,dsd_http",
        "DSD_CONFIG": schedule,
    }


def test_working_directory_lends_no_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder `vllm`, as in a checkout of vLLM, must not be taken for the installed one."""
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("raise SystemExit('the wrong vllm')")
    monkeypatch.chdir(tmp_path)
    python, *options = serve.command_for([])[: -len(["-m", "vllm.entrypoints.cli.main", "serve"])]
    code = "import importlib.util; print(importlib.util.find_spec('vllm').origin)"
    done = subprocess.run([python, *options, "-c", code], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in done.stdout


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the real command."""
    code = "from dsd_runtime.serve import main; main()"
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)


def test_help_shows_our_options() -> None:
    done = command("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--dsd-config" in done.stdout


def test_errors_are_one_line_and_no_traceback() -> None:
    done = command("m", "--dsd-config", "absent.yaml")
    assert done.returncode == 2
    assert done.stderr.startswith("dsd-serve: config file")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "speculative", "text"),
    [
        (None, SPECULATIVE, "config file s.yaml: cannot be read: No such file or directory"),
        ("", SPECULATIVE, "config file s.yaml: must be a mapping with the keys ranges, "),
        (
            "ranges:\n- {startBatchSize: 1\n",
            SPECULATIVE,
            "config file s.yaml: not valid YAML: line 3, column 1: expected",
        ),
        (SCHEDULE.replace("endBatch", "endbatch"), SPECULATIVE, "there is no such key; did you mean endBatchSize?"),
        (SCHEDULE, SPECULATIVE.replace("3", "2"), "K=3 is above the maximum of 2 that the engine was started with"),
        (SCHEDULE, SPECULATIVE.replace("ngram", "eagel"), "vLLM 0.32.0 has no method 'eagel'; did you mean eagle?"),
        (SCHEDULE, "{'method': 'ngram'}", "--speculative-config is not valid JSON"),
    ],
)
def test_friendly_errors(content: str | None, speculative: str, text: str, tmp_path: Path) -> None:
    """One line, before vLLM is imported, with what to do in it."""
    path = tmp_path / "s.yaml"
    if content is not None:
        path.write_text(content)
    done = command("m", "--dsd-config", str(path), "--speculative-config", speculative)
    said = done.stderr.replace(str(path), "s.yaml")
    assert (done.returncode, said.count("\n"), text in said) == (2, 1, True), said


def test_config_file_that_is_a_folder(tmp_path: Path) -> None:
    done = command("m", "--dsd-config", str(tmp_path))
    assert done.returncode == 2
    assert f"config file {tmp_path}: is not a regular file" in done.stderr


def test_missing_vllm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As where Python finds no distribution of that name."""
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.metadata as m\n"
        "real = m.version\n"
        "def version(name):\n"
        "    if name == 'vllm':\n"
        "        raise m.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "m.version = version\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = command("m")
    assert (done.returncode, done.stderr) == (
        2,
        "dsd-serve: vLLM is not installed; `pip install dsd-runtime[vllm]` brings it\n",
    )


def test_vllm_that_cannot_take_a_schedule(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, schedule: str) -> None:
    """An old one, by its version and its sources."""
    metadata = tmp_path / "vllm-0.9.1.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.9.1\n")
    source = tmp_path / "vllm" / "config" / "speculative.py"
    source.parent.mkdir(parents=True)
    (tmp_path / "vllm" / "__init__.py").touch()
    source.write_text("class SpeculativeConfig:\n    method: str\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = command("m", "--dsd-config", schedule, "--speculative-config", SPECULATIVE)
    assert done.returncode == 2
    assert done.stderr == (
        "dsd-serve: vLLM 0.9.1 cannot take a schedule at all (it has no num_speculative_tokens_per_batch_size); vLLM "
        "0.32.x is needed: pip install --upgrade 'dsd-runtime[vllm]'\n"
    )


def test_the_environment_says_how_long_requests_may_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSD_DRAIN_TIMEOUT_SECONDS", "7")
    assert arguments("m", "--host", "h") == ["m", "--host", "h", "--shutdown-timeout", "7"]
    assert arguments("m", "--host", "h", "--shutdown-timeout", "9") == ["m", "--host", "h", "--shutdown-timeout", "9"]


@pytest.mark.parametrize("text", ["", "1.5", "-1", "soon"])
def test_a_time_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("DSD_DRAIN_TIMEOUT_SECONDS", text)
    with pytest.raises(UsageError, match="whole number of seconds"):
        arguments("m")
