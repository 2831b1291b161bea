"""The token file: what its content means, and that each request goes by its content of now."""

import os
from pathlib import Path

import pytest

from dsd_runtime.auth import MAX_TOKEN_BYTES, AuthError, authorize
from dsd_runtime.protocol import TokenFileAuth

AUTH = TokenFileAuth(token_file="token")


def refusal(token: bytes | str, folder: Path, auth: TokenFileAuth = AUTH) -> tuple[int, str]:
    """(status, why) for this token; 200 when it may write."""
    try:
        authorize([b"Bearer " + (token.encode() if isinstance(token, str) else token)], auth, folder)
    except AuthError as error:
        return error.status, error.detail
    return 200, ""


@pytest.mark.parametrize("content", ["s3cret", "s3cret\n", "s3cret\r\n", " \ts3cret \n\n"])
def test_white_space_around_does_not_count(content: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(content)
    assert refusal("s3cret", tmp_path)[0] == 200


@pytest.mark.parametrize("wrong", ["s3cre", "s3cret2", "S3CRET", "s3 cret", "x", "s3cret\x00", "a" * 10_000])
def test_another_token(wrong: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    assert refusal(wrong, tmp_path) == (401, "this is not the token of the token file")


def test_absolute_path(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    assert refusal("s3cret", Path("/nonexistent"), TokenFileAuth(token_file=str(tmp_path / "token")))[0] == 200


@pytest.mark.parametrize("secret", ["sésame", "пароль", "秘密", "🔑"])
def test_secret_beyond_ascii(secret: str, tmp_path: Path) -> None:
    """A header has bytes, no characters: they are compared as they come, which is UTF-8 from every common client."""
    (tmp_path / "token").write_text(secret + "\n", encoding="utf-8")
    assert refusal(secret.encode(), tmp_path)[0] == 200
    assert refusal(secret.encode()[:-1], tmp_path)[0] == 401
    assert refusal(secret.encode("utf-16"), tmp_path)[0] == 401


def test_binary_secret(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"\xff\xfe\x01")
    assert refusal(b"\xff\xfe\x01", tmp_path)[0] == 200
    assert refusal(b"\xff\xfe\x02", tmp_path)[0] == 401


@pytest.mark.parametrize("content", ["", " \n", "\n\n\t"])
def test_empty_file_switches_writing_off(content: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(content)
    status, detail = refusal("x", tmp_path)
    assert (status, "is empty" in detail) == (403, True)


def test_what_is_no_file_switches_writing_off(tmp_path: Path) -> None:
    assert refusal("x", tmp_path)[0] == 403
    (tmp_path / "token").mkdir()
    assert "not a regular file" in refusal("x", tmp_path)[1]
    (tmp_path / "token").rmdir()
    os.mkfifo(tmp_path / "token")
    assert "not a regular file" in refusal("x", tmp_path)[1], "and it does not wait for a writer"
    assert refusal("x", tmp_path, TokenFileAuth(token_file="a\x00b"))[0] == 403
    assert refusal("x", tmp_path, TokenFileAuth(token_file="/dev/zero"))[0] == 403


def test_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root everything can be read, so the refusal of the system is made here."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "token").write_text("s3cret")
    monkeypatch.setattr(Path, "open", refuse)
    status, detail = refusal("s3cret", tmp_path)
    assert (status, "Permission denied" in detail) == (403, True)


def test_file_that_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a" * MAX_TOKEN_BYTES)
    assert refusal("a" * MAX_TOKEN_BYTES, tmp_path)[0] == 200
    (tmp_path / "token").write_text("a" * (MAX_TOKEN_BYTES + 1))
    assert refusal("a" * MAX_TOKEN_BYTES, tmp_path)[0] == 403


def test_rotation_counts_with_the_next_request(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    assert refusal("old", tmp_path)[0] == 200
    file.write_text("new")
    assert [refusal(token, tmp_path)[0] for token in ("old", "new")] == [401, 200]
    file.write_text("")
    assert refusal("new", tmp_path)[0] == 403
    file.unlink()
    assert refusal("new", tmp_path)[0] == 403
    file.write_text("new")
    assert refusal("new", tmp_path)[0] == 200


def test_refusal_repeats_neither_token_nor_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "token").write_text("hunter2-secret")
    for token in ("hunter2-guess", "hunter2-" + "a" * MAX_TOKEN_BYTES):
        status, detail = refusal(token, tmp_path)
        assert status == 401
        assert "hunter2" not in detail + caplog.text
