"""The command line's answers to mistakes, and what the importable functions say without a cluster."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.cluster import api, api_only, certificates, cli, kubeconfig, paths, shrink_torch, waiting
from tools.cluster.errors import ClusterError


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DSD_KUBECONFIG", raising=False)


def test_help_of_every_command_needs_nothing_but_the_standard_library() -> None:
    for command in ((), ("up",), ("down",), ("status",), ("images",), ("tools",)):
        call = [sys.executable, "-I", "-S", "-c", _ISOLATED, str(paths.REPOSITORY), *command, "--help"]
        answer = subprocess.run(call, capture_output=True, text=True, check=True)
        assert "usage: python3 -m tools.cluster" in answer.stdout


_ISOLATED = "import sys; sys.path.insert(0, sys.argv.pop(1)); from tools.cluster.cli import main; sys.exit(main())"


def test_api_only_without_a_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["up", "--api-only"]) == 1
    assert "--api-only needs --state DIR" in capsys.readouterr().err


def test_a_directory_with_other_files_is_not_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    assert cli.main(["down", "--state", str(tmp_path)]) == 1
    assert "thesis.txt" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").exists()


def test_stopping_what_was_never_started_is_no_error(tmp_path: Path) -> None:
    api_only.stop(tmp_path / "nothing")


def test_existing_cluster_is_used_and_nothing_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DSD_KUBECONFIG", str(tmp_path / "theirs"))
    assert cli.main(["up"]) == 1
    assert "does not exist" in capsys.readouterr().err
    (tmp_path / "theirs").touch()
    assert cli.main(["up"]) == 0
    assert api.full_node_kubeconfig() == tmp_path / "theirs"
    assert capsys.readouterr().out == f"export KUBECONFIG={tmp_path / 'theirs'}\n"


def test_kubeconfig_without_a_node_says_what_to_do() -> None:
    with pytest.raises(ClusterError, match=r"python3 -m tools\.cluster up"):
        api.full_node_kubeconfig()


def test_unknown_program_is_answered_with_the_known() -> None:
    with pytest.raises(ClusterError, match="kubectl"):
        api.program("kubeadm")


def test_waiting_is_bounded() -> None:
    assert not waiting.poll(lambda: False, seconds=0)
    assert waiting.poll(lambda: True, seconds=0)


def test_kubeconfig_is_private_and_complete(tmp_path: Path) -> None:
    authority = certificates.Authority(tmp_path)
    authority.create()
    authority.issue("admin", "someone", group="some:group", addresses=["IP:127.0.0.1"])
    path = tmp_path / "kubeconfig"
    kubeconfig.write(path, "https://127.0.0.1:1", authority, "admin")
    assert path.stat().st_mode & 0o777 == 0o600
    assert authority.key("admin").stat().st_mode & 0o777 == 0o600
    show = ["openssl", "verify", "-CAfile", str(authority.certificate("ca")), str(authority.certificate("admin"))]
    assert "OK" in subprocess.run(show, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not all(map(shutil.which, ("gcc", "nm", "readelf"))), reason="needs a C compiler, as the image has")
def test_stub_library_keeps_symbols_and_versions_for_the_linker(tmp_path: Path) -> None:
    (tmp_path / "big.c").write_text("int answer(void) { return 42; }\nint other(void) { return 1; }\n")
    (tmp_path / "big.map").write_text("BIG_1 { global: answer; other; };\n")
    (tmp_path / "user.c").write_text("int answer(void); int used(int call) { return call ? answer() : 7; }\n")
    library, user = tmp_path / "libbig.so.1", tmp_path / "libuser.so"
    compile_shared = ["gcc", "-shared", "-fPIC", "-o"]
    flags = ["-Wl,-soname,libbig.so.1", f"-Wl,--version-script={tmp_path / 'big.map'}"]
    subprocess.run([*compile_shared, library, tmp_path / "big.c", *flags], check=True)
    subprocess.run([*compile_shared, user, tmp_path / "user.c", library, f"-Wl,-rpath,{tmp_path}"], check=True)
    before = shrink_torch.symbols(library)
    shrink_torch.write_stub(library)
    assert shrink_torch.symbols(library) == before == {"answer": "BIG_1", "other": "BIG_1"}
    load = "import ctypes, os, sys; print(ctypes.CDLL(sys.argv[1], os.RTLD_NOW).used(int(sys.argv[2])))"
    quiet = subprocess.run([sys.executable, "-c", load, user, "0"], capture_output=True, text=True, check=True)
    assert quiet.stdout == "7\n"
    assert subprocess.run([sys.executable, "-c", load, user, "1"], check=False).returncode < 0  # a call traps
