"""docs/reference/security.md: each test that it calls as a witness exists, and each limit is the one in the code."""

import re
from pathlib import Path
from typing import Final

from dsd_operator.cluster.tokens import LIFETIME_SECONDS
from dsd_runtime.auth import LEEWAY_SECONDS, MAX_LIFETIME_SECONDS, MAX_TOKEN_BYTES
from dsd_runtime.protocol import MAX_BODY_BYTES
from dsd_runtime.readers import HEAD_START_SECONDS
from dsd_runtime.routes import MAX_WAITING_WRITERS

ROOT: Final = Path(__file__).parents[3]
TEXT: Final = (ROOT / "docs" / "reference" / "security.md").read_text()
WITNESSES: Final = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)


def test_every_test_it_names_exists() -> None:
    assert len(WITNESSES) > 30
    missing = [f"{file}::{name}" for file, name in WITNESSES if f"def {name}(" not in (ROOT / file).read_text()]
    assert missing == []


def test_every_row_of_a_threat_or_limit_names_a_test() -> None:
    for heading in ("Against whom", "Keys, issuers and secrets that change", "What a request can cost"):
        section = TEXT.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
        rows = [line for line in section.splitlines() if line.startswith("|")][2:]
        assert rows
        assert [row for row in rows if "`tests/" not in row] == []


def test_its_numbers_are_those_of_the_code() -> None:
    assert f"{LIFETIME_SECONDS // 60} minutes long" in TEXT
    assert f"at most {MAX_LIFETIME_SECONDS // 3600} hours apart" in TEXT
    assert f"may differ by {LEEWAY_SECONDS} s" in TEXT
    assert f"Authorization header | {MAX_TOKEN_BYTES // 1024} KiB" in TEXT
    assert f"body | {MAX_BODY_BYTES // 1024} KiB" in TEXT
    assert f"another only after {HEAD_START_SECONDS:.0f} s" in TEXT
    assert f"writers that wait | {MAX_WAITING_WRITERS}," in TEXT
