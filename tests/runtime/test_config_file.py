"""The config file: reading it, and following it through everything that happens to files."""

import json
import os
from pathlib import Path

import pytest

from dsd_runtime import config_file
from dsd_runtime.config_file import MAX_FILE_BYTES, ConfigFileError, Watcher, parse, read
from dsd_runtime.protocol import ConfigFile, TokenFileAuth, TokenReviewAuth
from tests.runtime import tokens

RANGE = '{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 3}'
GOOD = f'{{"revision": {{"owner": "a/b/c", "number": 7}}, "ranges": [{RANGE}]}}'


def content(k: int) -> str:
    """A config file without a revision."""
    return f"ranges:\n- {{startBatchSize: 1, endBatchSize: 8, numSpeculativeTokens: {k}}}\n"


def test_json_as_the_operator_writes_it() -> None:
    auth = tokens.auth_section(tokens.public_jwk(tokens.new_ec(), "one"))
    config = parse(json.dumps(json.loads(GOOD) | {"auth": auth}).encode())
    assert config.revision is not None
    assert config.revision.number == 7
    assert isinstance(config.auth, TokenReviewAuth)


def test_yaml_as_people_write_it() -> None:
    config = parse((content(3) + "auth: {tokenFile: token}\n").encode())
    assert config.revision is None
    assert config.ranges[0].triple() == (1, 8, 3)
    assert config.auth == TokenFileAuth(token_file="token")


def test_round_trip_of_the_wire_format() -> None:
    assert parse(json.dumps(parse(GOOD.encode()).dump()).encode()) == parse(GOOD.encode())


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "mapping"),
        ("[]", "mapping"),
        ("ranges", "mapping"),
        ("ranges: [", "not valid YAML"),
        ("{}", "ranges: is missing"),
        ("ranges: []", "ranges"),
        (f"ranges: [{RANGE}]\nranges: [{RANGE}]", "given twice"),
        (f"ranges: [{RANGE}]\nrange: 1", "range: there is no such key; did you mean ranges?"),
        ('ranges: [{"startBatchSize": "1", "endBatchSize": 8, "numSpeculativeTokens": 3}]', "ranges[0].startBatchSize"),
        ('ranges: [{"startBatchSize": 1.5, "endBatchSize": 8, "numSpeculativeTokens": 3}]', "ranges[0].startBatchSize"),
        ("ranges: [{startBatchSize: 1, endBatchSize: 8, numSpeculativeTokens: .nan}]", "not valid YAML"),
        ("ranges: 2020-01-01", "not valid YAML"),
        (f"ranges: [{RANGE}]\nauth: {{}}", "auth"),
        (f"ranges: [{RANGE}]\nrevision: 5", "revision"),
        ("ranges: !!python/object/apply:os.system ['true']", "not valid YAML"),
        ("\x00", "not valid YAML"),
        ("&a [*a]", "not valid YAML"),
        ("[" * 20000, "not valid YAML"),
        ("? {a: b}\n: c", "not valid YAML"),
        ("ranges: !!int ''", "not valid YAML"),
        ("ranges: !!bool maybe", "not valid YAML"),
        ("ranges: !!timestamp soon", "not valid YAML"),
        ("ranges: 1" + ":1" * 400 + ".5", "not valid YAML"),
        ("ranges: &a [1]\nauth: *a", "aliases are not supported"),
    ],
)
def test_bad_content_says_what_is_wrong(text: str, hint: str) -> None:
    with pytest.raises(ConfigFileError) as error:
        parse(text.encode())
    assert hint in str(error.value)
    assert "\n" not in str(error.value)


def test_aliases_that_unfold_without_end_are_not_unfolded() -> None:
    """2^100 items in a hundred lines; the test would not end, nor would the engine."""
    lines = ["a0: &a0 [1]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 100))]
    with pytest.raises(ConfigFileError, match="aliases are not supported"):
        parse("\n".join(lines).encode())


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(ConfigFileError, match="not valid YAML"):
        parse(b"\xff\xfe\xfa")


def test_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    with path.open("wb") as file:
        file.truncate(50 * MAX_FILE_BYTES)
    with pytest.raises(ConfigFileError, match="larger than"):
        read(path)


def test_path_is_in_the_message(tmp_path: Path) -> None:
    with pytest.raises(ConfigFileError, match=r"absent\.yaml: cannot be read: No such file"):
        read(tmp_path / "absent.yaml")
    with pytest.raises(ConfigFileError, match="is not a regular file"):
        read(tmp_path)


class Followed:
    """A watcher that is polled by hand, and what it reported."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.applied: list[int] = []
        self.faults: list[str | None] = []
        self.watcher = Watcher(path, self._apply, self.faults.append)

    def _apply(self, config: ConfigFile) -> str | None:
        k = config.ranges[0].num_speculative_tokens
        self.applied.append(k)
        return "too many" if k > 4 else None

    def see(self, text: str) -> None:
        """Replace the content, and poll."""
        self.path.write_text(text)
        self.watcher.poll()


def test_each_content_is_applied_once(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "config.yaml")
    for text in (content(1), content(1), content(2), content(1)):
        followed.see(text)
        followed.watcher.poll()
    assert followed.applied == [1, 2, 1]
    assert followed.faults == []


def test_bad_content_is_reported_once_and_recovers(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "config.yaml")
    followed.see(content(1))
    for text in ("ranges: [", "ranges: [", content(1), content(2)):
        followed.see(text)
        followed.watcher.poll()
    assert followed.applied == [1, 2]
    assert [fault is None for fault in followed.faults] == [False, True]
    assert "config.yaml" in str(followed.faults[0])


def test_half_written_file(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "config.yaml")
    followed.see(GOOD)
    for end in range(1, len(GOOD)):
        followed.see(GOOD[:end])
    followed.see(GOOD)
    assert followed.applied == [3], "no prefix of the file is a schedule of its own"


def test_content_that_cannot_be_used_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of YAML takes seconds, each time the file is looked at, of the process that serves."""
    parsed: list[bytes] = []

    def counted(data: bytes) -> ConfigFile:
        parsed.append(data)
        return parse(data)

    monkeypatch.setattr(config_file, "parse", counted)
    followed = Followed(tmp_path / "config.yaml")
    for text in (content(1), "ranges: [", "ranges: [", content(1), "ranges: [", "ranges: [1", "ranges: [1", content(1)):
        followed.see(text)
    assert parsed == [content(1).encode(), b"ranges: [", b"ranges: [1"]
    assert followed.applied == [1]
    assert [fault is None for fault in followed.faults] == [False, True, False, False, True]


def test_missing_file_and_its_return(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "config.yaml")
    followed.watcher.poll()
    followed.see(content(1))
    followed.path.unlink()
    followed.watcher.poll()
    followed.watcher.poll()
    followed.see(content(1))
    followed.see(content(2))
    assert followed.applied == [1, 2]
    assert len(followed.faults) == 4


def test_refused_content_is_a_fault_until_a_good_one_comes(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "config.yaml")
    for text in (content(5), content(5), "ranges: [", content(5), content(2)):
        followed.see(text)
        followed.watcher.poll()
    assert followed.applied == [5, 2]
    assert [str(fault).rpartition(": ")[2] for fault in followed.faults[::2]] == ["too many", "too many"]
    assert (len(followed.faults), followed.faults[-1]) == (4, None)


def test_again_applies_what_has_not_changed(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "config.yaml")
    followed.see(content(1))
    followed.watcher.again()
    followed.watcher.poll()
    followed.watcher.poll()
    assert followed.applied == [1, 1]


def test_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.yaml")
    with pytest.raises(ConfigFileError, match="not a regular file"):
        read(tmp_path / "config.yaml")


def test_failure_to_apply_is_logged_once_and_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A fault of ours: the content counts as seen only once it was applied."""
    from tests.runtime.server import wait_until

    attempts: list[ConfigFile] = []
    faults: list[str | None] = []

    def apply(config: ConfigFile) -> None:
        attempts.append(config)
        if len(attempts) < 3:
            raise RuntimeError("no luck")

    (tmp_path / "config.yaml").write_text(content(1))
    watcher = Watcher(tmp_path / "config.yaml", apply, faults.append)
    watcher.start()
    wait_until("it is applied", lambda: faults and faults[-1] is None)
    watcher.stop()
    assert len(attempts) == 3
    assert len(faults) == 2
    assert "no luck" in str(faults[0])
    assert caplog.text.count("RuntimeError: no luck") == 1


def test_config_map_switch(tmp_path: Path) -> None:
    """As the kubelet does it: config.yaml -> ..data/config.yaml, and ..data is switched to a new folder."""
    for name, k in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(content(k))
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "config.yaml").symlink_to("..data/config.yaml")
    followed = Followed(tmp_path / "config.yaml")
    followed.watcher.poll()
    (tmp_path / "..data_tmp").symlink_to("two")
    os.replace(tmp_path / "..data_tmp", tmp_path / "..data")
    followed.watcher.poll()
    assert followed.applied == [1, 2]


def test_thread_follows_and_ends(tmp_path: Path) -> None:
    from tests.runtime.server import wait_until

    followed = Followed(tmp_path / "config.yaml")
    followed.path.write_text(content(1))
    followed.watcher.start()
    wait_until("the first content", lambda: followed.applied == [1])
    followed.path.write_text(content(2))
    wait_until("the second content", lambda: followed.applied == [1, 2])
    followed.watcher.stop()
