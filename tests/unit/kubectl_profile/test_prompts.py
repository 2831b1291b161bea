"""The built-in prompts and JSONL files of them."""

from pathlib import Path

import pytest

from kubectl_dsd.errors import Failure
from kubectl_dsd.profile.prompts import BUILT_IN, Prompt, built_in, from_file
from kubectl_dsd.profile.streams import Settings, body_of


def test_the_built_in_set_is_mixed_and_always_the_same() -> None:
    texts = [prompt.messages[0]["content"] for prompt in built_in() if prompt.messages]

    assert sorted(texts) == sorted(text for kind in BUILT_IN.values() for text in kind)
    assert texts == [prompt.messages[0]["content"] for prompt in built_in() if prompt.messages]
    assert len(BUILT_IN) >= 4
    assert {text in BUILT_IN["edit"] for text in texts[:8]} == {True, False}


def test_a_file_holds_texts_and_chats(tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"prompt": "a", "max_tokens": 5}\n\n{"messages": [{"role": "user", "content": "b"}]}\n')

    assert from_file(file) == (
        Prompt(text="a", max_tokens=5),
        Prompt(messages=({"role": "user", "content": "b"},)),
    )


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "{}", '{"prompt": 1}', '{"prompt": "a", "messages": []}', '{"prompt": "a", "max_tokens": 0}',
     '{"messages": [{"role": "user"}]}', '{"prompt": "a", "max_tokens": true}'],
)  # fmt: skip
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"prompt": "fine"}\n' + line + "\n")

    with pytest.raises(Failure) as refused:
        from_file(file)
    assert f"{file}:2" in refused.value.message


def test_an_empty_or_missing_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")

    with pytest.raises(Failure, match="no prompt"):
        from_file(tmp_path / "empty")
    with pytest.raises(Failure, match="cannot be read"):
        from_file(tmp_path / "missing")


def test_a_request_is_streamed_counted_and_cut_to_what_the_engine_can_hold() -> None:
    body = body_of(Prompt(text="x"), Settings("m", max_tokens=100, limit=512))

    assert body["prompt"] == "x"
    assert (body["max_tokens"], body["temperature"], body["truncate_prompt_tokens"]) == (100, 0.0, 412)
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}


def test_a_prompt_may_say_how_long_its_answer_is() -> None:
    settings = Settings("m", max_tokens=100)

    assert body_of(Prompt(text="x", max_tokens=7), settings)["max_tokens"] == 7
    assert body_of(Prompt(text="x", max_tokens=7), settings, 3)["max_tokens"] == 3
