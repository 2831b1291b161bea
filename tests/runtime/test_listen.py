"""Where the server would listen, and what `dsd-serve` says before anything loads when it cannot."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsd_runtime import listen
from dsd_runtime.usage import UsageError


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on, on 127.0.0.1 alone."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def spellings(port: int, tmp_path: Path) -> list[list[str]]:
    """Ways to name a port."""
    file = tmp_path / "vllm.yaml"
    file.write_text(json.dumps({"port": port}))
    return [
        ["--port", str(port)],
        [f"--port={port}"],
        ["--por", str(port)],
        ["--port", "1", "--port", str(port)],
        ["--config", str(file)],
    ]


@pytest.mark.parametrize("host", [[], ["--host", "0.0.0.0"], ["--host", "127.0.0.1"], ["--host", "::"]])
def test_port_in_use(taken: int, host: list[str], tmp_path: Path) -> None:
    for words in spellings(taken, tmp_path):
        with pytest.raises(UsageError, match=rf"port {taken}.* is in use by another process.*--port"):
            listen.check_free(["m", *host, *words])


def test_other_addresses_are_free(taken: int) -> None:
    """Only what vLLM would really bind counts."""
    listen.check_free(["m", "--host", "127.0.0.2", "--port", str(taken)])
    listen.check_free(["m", "--headless", "--port", str(taken)])
    listen.check_free(["m", "--uds", "/tmp/no-such-socket", "--port", str(taken)])


def test_command_line_beats_the_config_file(taken: int, tmp_path: Path) -> None:
    file = tmp_path / "vllm.yaml"
    file.write_text(f"port: {taken}\n")
    listen.check_free(["m", "--config", str(file), "--host", "127.0.0.2"])
    with pytest.raises(UsageError):
        listen.check_free(["m", "--config", str(file), "--host", "127.0.0.1"])
    listen.check_free(["m", "--config", str(file), "--port", "0"])


def test_default_port(monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    monkeypatch.setattr(listen, "DEFAULT_PORT", taken)
    with pytest.raises(UsageError, match="in use"):
        listen.check_free(["m"])


@pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="only Linux tells bound ports from lingering connections"
)
def test_port_of_a_server_that_still_loads() -> None:
    """vLLM binds its port at once and listens minutes later; a second one could bind it too, and fail at the end."""
    with socket.socket() as loading:
        loading.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        loading.bind(("127.0.0.1", 0))
        port = loading.getsockname()[1]
        with socket.socket() as second:
            second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            second.bind(("127.0.0.1", port))
        with pytest.raises(UsageError, match="in use by another process"):
            listen.check_free(["m", "--host", "127.0.0.1", "--port", str(port)])


def test_a_closed_server_leaves_no_obstacle() -> None:
    """Connections that linger (TIME_WAIT) do not keep the port."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        server.listen()
        with socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()
    listen.check_free(["m", "--host", "127.0.0.1", "--port", str(port)])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--host", "192.0.2.1"], "--host 192.0.2.1 is no address of this machine"),
        (["--host", "no-such-host.invalid"], "there is no such host"),
        (["--port", "70000"], "there is no such port"),
    ],
)
def test_addresses_that_cannot_be(words: list[str], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        listen.check_free(["m", *words])


def test_socket_file(tmp_path: Path) -> None:
    path = tmp_path / "s"
    listen.check_free(["m", "--uds", str(path)])
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        with pytest.raises(UsageError, match="in use by another process"):
            listen.check_free(["m", f"--uds={path}"])
    with pytest.raises(UsageError, match="nobody serves; remove it"):
        listen.check_free(["m", "--uds", str(path)])
    with pytest.raises(UsageError, match="there is no folder"):
        listen.check_free(["m", "--uds", str(tmp_path / "x" / "s")])


def test_only_ipv6_and_no_way_out_over_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    """With net.ipv6.bindv6only=1 one family is shut out; on a machine that has only IPv6 it must not be that."""

    class OnlyIPv6(socket.socket):
        def __init__(self, family: int = -1, *rest: int) -> None:
            super().__init__(family, *rest)
            if family == socket.AF_INET6:
                self.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)

        def connect(self, _: object) -> None:
            raise OSError(101, "Network is unreachable")

    if not socket.has_ipv6:
        pytest.skip("this Python has no IPv6")
    monkeypatch.setattr(socket, "socket", OnlyIPv6)
    assert listen.default_host() == "::"


def test_the_command_says_so_at_once(taken: int, tmp_path: Path) -> None:
    """The real command, before vLLM is imported, in one line."""
    code = "from dsd_runtime.serve import main; main()"
    words = ["no/model", "--host", "127.0.0.1", "--port", str(taken)]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"dsd-serve: port {taken} of 127.0.0.1 is in use by another process: stop that one, or choose another port "
        "with --port\n"
    )
