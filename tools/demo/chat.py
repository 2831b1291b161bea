"""Talking to the demo's engine: one answer to read, and a little load to fill the metrics."""

from concurrent.futures import ThreadPoolExecutor
from typing import Final

import httpx

_SECONDS: Final = 300.0
_CODE: Final = """\
def total_price(items, tax_rate):
    subtotal = sum(item.price * item.quantity for item in items)
    discount = sum(item.discount for item in items if item.discount is not None)
    taxable = max(subtotal - discount, 0)
    return taxable + taxable * tax_rate
"""
_TASK: Final = f"Copy this code exactly, but rename the function to `compute_total_{{}}`:\n\n```python\n{_CODE}```"


def ask(url: str, model: str, question: str, max_tokens: int) -> str:
    """The greedy answer of a chat completion."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": max_tokens,
        "temperature": 0,
    }
    answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=_SECONDS, trust_env=False)
    return str(answer.raise_for_status().json()["choices"][0]["message"]["content"])


def load(url: str, model: str, concurrency: int, requests: int, max_tokens: int = 64) -> None:
    """Send `requests` chats, `concurrency` at a time, whose answers repeat the question: n-gram drafts fit them."""
    questions = [_TASK.format(number) for number in range(requests)]
    with ThreadPoolExecutor(concurrency) as pool:
        list(pool.map(lambda question: ask(url, model, question, max_tokens), questions))


def model_name(url: str) -> str:
    """The name that the engine serves its model under."""
    answer = httpx.get(f"{url}/v1/models", timeout=_SECONDS, trust_env=False)
    return str(answer.raise_for_status().json()["data"][0]["id"])
