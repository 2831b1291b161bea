"""Whatever a file holds, the answer is a resource or words about what is wrong, and never a trace."""

from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.convert import test_compose, test_kubernetes
from tests.unit.convert.converted import run

SEEDS = [
    yaml.safe_load(text)
    for text in (
        test_compose.FILE,
        test_kubernetes.DEPLOYMENT,
        test_kubernetes.RUNTIME,
        test_kubernetes.SERVICE,
        test_kubernetes.VALUES,
    )
]
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "x", "$(X)", "${Y}", [], {}, [None], [[]], ["x"], {"a": None}, {"name": 1}]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside `value`."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(*path, key) for key, _ in inner] + [p for key, item in inner for p in places(item, (*path, key))]


def changed(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """A copy of `value` with something odd at `path`."""
    if not path:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(copy[path[0]], path[1:], odd)
    return copy


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_odd_values_anywhere(data: st.DataObject) -> None:
    body = data.draw(st.sampled_from(SEEDS))
    for _ in range(data.draw(st.integers(1, 2))):
        body = changed(body, data.draw(st.sampled_from(places(body))), data.draw(ODD))
    found = run("-f", "-", "--allow-partial", text=yaml.safe_dump(body))
    assert found.exit_code in (0, 2)
    assert found.exit_code == 0 or "Error: " in found.stderr


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text(content: str) -> None:
    assert run("-f", "-", "--allow-partial", text=content).exit_code in (0, 2)


WORDS = (
    *(
        "vllm",
        "serve",
        "docker",
        "run",
        "-e",
        "--gpus",
        "-sc",
        "{}",
        "--",
        "-",
        "-x",
        "--port",
        "a/b",
        "=",
        "bash",
        "-c",
    ),
    *("--speculative-config.method", "--hf-token", "--served-model-name", "-O", "''"),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8))
def test_any_words(words: list[str]) -> None:
    assert run("--allow-partial", "--", *words).exit_code in (0, 2)
