"""The plugin in a real vLLM: schedules that change while requests run, and what the metrics say of them."""

import itertools
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dsd_runtime.protocol import READY_PATH
from tests.runtime.conftest import FIRST, Engine, Triples
from tests.runtime.examples import OWNER
from tests.runtime.server import API_KEY, wait_until

pytestmark = pytest.mark.engine

TOKENS = 64
PROMPTS = [f"number {i}: the {word} sat on the mat and the mat sat on the {word}" for i, word in enumerate(
    ("cat", "dog", "cow", "hen", "rat", "bat", "ant", "bee")
)]  # fmt: skip


@pytest.fixture(scope="session")
def reference(models: Path) -> list[list[int]]:
    """Greedy completions of another implementation, without any speculation: transformers on the same weights."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(models / "target")
    model = AutoModelForCausalLM.from_pretrained(models / "target", dtype=torch.float32).eval()
    found = []
    for prompt in PROMPTS:
        ids = torch.tensor([tokenizer(prompt).input_ids])
        out = model.generate(ids, max_new_tokens=TOKENS, min_new_tokens=TOKENS, do_sample=False, eos_token_id=None)
        found.append(out[0, ids.shape[1] :].tolist())
    return found


def complete_all(engine: Engine) -> list[list[int]]:
    """All prompts at once."""
    with ThreadPoolExecutor(len(PROMPTS)) as pool:
        return list(pool.map(lambda prompt: engine.server.complete(prompt, TOKENS), PROMPTS))


def test_schedule_of_the_file_is_in_force_before_the_first_request(engine: Engine) -> None:
    status = engine.first_status
    ranges = status["schedule"]["ranges"]
    assert [tuple(r.values()) for r in ranges] == FIRST
    assert (status["schedule"]["source"], status["schedule"]["revision"]["number"]) == ("file", 5)
    assert status["engines"][0]["steps"] == 0
    assert status["mode"] == "on"
    probe = engine.server.client.get(READY_PATH)
    assert (probe.status_code, probe.content) == (200, engine.server.client.get("/health").content)


def test_envelope_is_what_vllm_resolved(engine: Engine) -> None:
    assert engine.first_status["envelope"] == {
        "method": "ngram",
        "modelRunner": "V1",
        "numSpeculativeTokens": 4,
        "maxNumSeqs": 16,
        "parallelDrafting": False,
        "preparedTokens": [0, 1, 2, 3, 4],
        "allowedTokens": [0, 1, 2, 3, 4],
        "verifyOnly": False,
    }


@pytest.mark.parametrize("k", [0, 4])
def test_outputs_equal_another_implementation(engine: Engine, reference: list[list[int]], k: int) -> None:
    engine.swap([(1, 64, k)])
    assert complete_all(engine) == reference


def test_outputs_stay_equal_while_the_schedule_is_swapped(engine: Engine, reference: list[list[int]]) -> None:
    """At least 20 changes, under 8 streams; every output is the reference's, every change is used at once."""
    done = threading.Event()
    random_numbers = random.Random(7)
    swaps: list[Triples] = []

    def swap_until_done() -> None:
        while not done.is_set() or len(swaps) < 20:
            middle = random_numbers.randint(1, 7)
            table = [(1, middle, random_numbers.randint(0, 4)), (middle + 1, 64, random_numbers.randint(0, 4))]
            status = engine.swap(table)
            assert [tuple(r.values()) for r in status["engines"][0]["schedule"]["ranges"]] == table
            swaps.append(table)

    with ThreadPoolExecutor(1) as pool:
        swapping = pool.submit(swap_until_done)
        outputs = [complete_all(engine) for _ in range(3)]
        done.set()
        swapping.result()
    assert len(swaps) >= 20
    assert outputs == [reference] * 3
    assert engine.in_use() == swaps[-1]


@pytest.mark.parametrize("k", [2, 0, 3])
def test_verified_k_follows_the_schedule(engine: Engine, k: int) -> None:
    engine.swap([(1, 64, k)])
    engine.server.complete(PROMPTS[0], 4)  # the first step after a change still verifies what was drafted before
    before = {other: engine.server.total("dsd_steps_total", k=str(other)) for other in range(5)}
    engine.server.complete(PROMPTS[1], TOKENS)
    after = {other: engine.server.total("dsd_steps_total", k=str(other)) for other in range(5)}
    moved = {other for other in before if after[other] > before[other]}
    # The step that computes the prompt verifies nothing: K=0.
    assert moved == {0, k}
    assert engine.server.total("dsd_num_speculative_tokens") == k
    assert engine.server.status()["engines"][0]["numSpeculativeTokens"] == k


def test_k_depends_on_the_batch_size(engine: Engine) -> None:
    engine.swap([(1, 1, 4), (2, 4, 2), (5, 64, 0)])
    before = engine.server.metrics().get("dsd_steps_total", {})
    complete_all(engine)
    after = engine.server.metrics().get("dsd_steps_total", {})
    moved = {dict(key)["k"]: n - before.get(key, 0) for key, n in after.items() if dict(key)["concurrency"] == "8"}
    # K is chosen one step before it is verified, so the step after a smaller batch may still carry its K.
    assert moved["0"] > 5 * (sum(moved.values()) - moved["0"])


PAIRS = {
    "dsd_draft_tokens_total": "vllm:spec_decode_num_draft_tokens_total",
    "dsd_accepted_tokens_total": "vllm:spec_decode_num_accepted_tokens_total",
    "dsd_emitted_tokens_total": "vllm:generation_tokens_total",
}
"""Our series, and vLLM's that has the same sum."""


def test_totals_equal_those_of_vllm(engine: Engine) -> None:
    engine.swap([(1, 4, 4), (5, 64, 2)])
    total = engine.server.total
    before = {name: total(name) for pair in PAIRS.items() for name in pair}
    complete_all(engine)

    def gains() -> dict[str, tuple[float, float]]:
        return {ours: (total(ours) - before[ours], total(vllm) - before[vllm]) for ours, vllm in PAIRS.items()}

    # vLLM counts in the API server, a moment after the engine core.
    wait_until("equal totals", lambda: all(ours == theirs for ours, theirs in gains().values()))
    assert all(ours > 0 for ours, _ in gains().values())


def test_positions_equal_those_of_vllm(engine: Engine) -> None:
    engine.swap([(1, 64, 4)])
    complete_all(engine)
    series = "dsd_accepted_tokens_per_pos_total", "vllm:spec_decode_num_accepted_tokens_per_pos_total"

    def pairs() -> list[list[float]]:
        return [[engine.server.total(name, position=str(i)) for name in series] for i in range(4)]

    wait_until("equal positions", lambda: all(ours == theirs for ours, theirs in pairs()))
    assert engine.server.total("dsd_draft_tokens_per_pos_total") == engine.server.total("dsd_draft_tokens_total")


def test_series_carry_the_labels_of_vllm(engine: Engine) -> None:
    for name, series in engine.server.metrics().items():
        if name.startswith("dsd_"):
            for key in series:
                assert {"model_name": "tiny", "engine": "0"}.items() <= dict(key).items(), name


def test_seconds_are_those_of_decode_steps(engine: Engine) -> None:
    engine.swap([(1, 64, 3)])
    engine.server.complete(PROMPTS[0], TOKENS)
    count = engine.server.total("dsd_step_duration_seconds_count", k="3")
    assert 0 < count < engine.server.total("dsd_steps_total")

    def agree() -> bool:
        summed, measured = (f"dsd_step_{name}" for name in ("seconds_total", "duration_seconds_sum"))
        return engine.server.total(summed, k="3") == pytest.approx(engine.server.total(measured, k="3"))

    wait_until("the same seconds", agree)  # they are in two files, which follow each other


def test_metrics_show_the_schedule_in_use_and_no_other(engine: Engine) -> None:
    status = engine.swap([(1, 7, 1), (8, 64, 0)])
    number = str(status["schedule"]["revision"]["number"])
    # A change that follows another one closely is shown half a second later.
    wait_until("it is shown", lambda: engine.server.total("dsd_schedule_revision_info", revision=number))
    metrics = engine.server.metrics()
    assert len(metrics["dsd_schedule_revision_info"]) == 1
    (labels,) = (dict(key) for key in metrics["dsd_schedule_revision_info"])
    assert labels["hash"] == status["schedule"]["hash"]
    assert labels["revision"] == number
    assert {
        (dict(key)["start"], dict(key)["end"]): k for key, k in metrics["dsd_schedule_num_speculative_tokens"].items()
    } == {("1", "7"): 1, ("8", "64"): 0}


def test_smoothing_comes_and_goes_with_a_put(engine: Engine) -> None:
    plain = engine.swap([(1, 7, 1), (8, 64, 0)])["schedule"]
    smoothing = {"dwellSteps": 20, "marginPercent": 10}
    revision = {"owner": OWNER, "number": engine.next_number()}
    answer = engine.put({"revision": revision, "ranges": plain["ranges"], "smoothing": smoothing})
    assert answer.status_code == 200, answer.text
    for shown in (answer.json()["schedule"], engine.server.status()["engines"][0]["schedule"]):
        assert (shown["smoothing"], shown["ranges"]) == (smoothing, plain["ranges"])
        assert shown["hash"] != plain["hash"]
    again = engine.swap([(1, 7, 1), (8, 64, 0)])["schedule"]
    assert "smoothing" not in again
    assert again["hash"] == plain["hash"]


def test_file_brings_a_newer_schedule_and_never_an_older_one(engine: Engine) -> None:
    number = engine.next_number()
    engine.write_config(number, [(1, 64, 2)])
    wait_until("the file's schedule", lambda: engine.in_use() == [(1, 64, 2)])
    assert engine.server.status()["schedule"]["source"] == "file"
    engine.swap([(1, 64, 3)])
    stale = engine.server.total("dsd_schedule_updates_total", source="file", result="stale")
    engine.write_config(number, [(1, 64, 0)])
    wait_until(
        "the older one is seen",
        lambda: engine.server.total("dsd_schedule_updates_total", source="file", result="stale") > stale,
    )
    assert engine.in_use() == [(1, 64, 3)]
    assert "lastError" not in engine.server.status()


def test_broken_file_changes_nothing_and_is_reported(engine: Engine) -> None:
    engine.swap([(1, 64, 1)])
    good = engine.config.read_text()
    for broken in ("ranges: [", "", good[: len(good) // 2]):
        engine.config.write_text(broken)
        wait_until("it is reported", lambda: "lastError" in engine.server.status())
        assert engine.server.status()["lastError"]["source"] == "file"
        engine.config.write_text(good)
        wait_until("it is forgotten", lambda: "lastError" not in engine.server.status())
    assert engine.in_use() == [(1, 64, 1)]


def test_impossible_schedule_in_the_file_is_reported(engine: Engine) -> None:
    engine.swap([(1, 64, 1)])
    engine.write_config(engine.next_number(), [(1, 64, 9)])
    wait_until("it is reported", lambda: "lastError" in engine.server.status())
    assert "above the maximum of 4" in engine.server.status()["lastError"]["message"]
    assert engine.in_use() == [(1, 64, 1)]
    engine.write_config(engine.next_number(), [(1, 64, 2)])
    wait_until("the next one is used", lambda: engine.in_use() == [(1, 64, 2)])
    assert "lastError" not in engine.server.status()


def test_routes_work_below_the_root_path(engine: Engine) -> None:
    assert engine.server.client.get("/llm/dsd/v1/status").status_code == 200


def test_api_key_is_no_key_to_the_schedule(engine: Engine) -> None:
    before = engine.in_use()
    assert engine.put({}, token=API_KEY).status_code == 401
    assert engine.server.client.get("/v1/models").status_code == 401
    assert engine.in_use() == before


def test_chat_works(engine: Engine) -> None:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 8}
    answer = engine.server.client.post(
        "/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {API_KEY}"}
    )
    assert answer.json()["choices"][0]["message"]["content"]


def test_aborted_requests_leave_the_engine_well(engine: Engine, reference: list[list[int]]) -> None:
    """Streams that are cut off in the middle, with the schedule changing."""
    body = {"model": "tiny", "prompt": PROMPTS[0], "max_tokens": 400, "stream": True, "ignore_eos": True}
    headers = {"Authorization": f"Bearer {API_KEY}"}
    for k in itertools.islice(itertools.cycle((4, 0, 2)), 6):
        with engine.server.client.stream("POST", "/v1/completions", json=body, headers=headers) as stream:
            next(stream.iter_lines())
            engine.swap([(1, 64, k)])
    assert complete_all(engine) == reference
