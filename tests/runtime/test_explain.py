"""Errors in documents as a person reads them: where, what, and the key that was meant."""

import pytest

from dsd_runtime.config_file import ConfigFileError, parse

RANGE = "{startBatchSize: 1, endBatchSize: 8, numSpeculativeTokens: 3}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"rangs: [{RANGE}]", "rangs: there is no such key; did you mean ranges?"),
        (
            f"ranges: [{RANGE.replace('startBatchSize', 'start_batchsize')}]",
            "ranges[0].start_batchsize: there is no such key; did you mean startBatchSize?",
        ),
        (f"ranges: [{RANGE}]\nxyzzy: 1", "xyzzy: there is no such key"),
        (f"ranges: [{RANGE}]\nauth: {{tokenfile: x}}", "auth.tokenfile: there is no such key; did you mean tokenFile?"),
        (
            f"ranges: [{RANGE}]\nauth: {{issuer: x, audience: y, subject: z}}",
            "auth.jwks: is missing",
        ),
        (
            f"ranges: [{RANGE}]\nsmoothing: {{dwelSteps: 3}}",
            "smoothing.dwelSteps: there is no such key; did you mean dwellSteps?",
        ),
        ("ranges: [{startBatchSize: 1, endBatchSize: 8}]", "ranges[0].numSpeculativeTokens: is missing"),
        (
            "ranges:\n- {startBatchSize: 1\n- x",
            (
                "not valid YAML: line 3, column 4: expected ',' or '}', but got '<stream end>' "
                "(while parsing a flow mapping)"
            ),
        ),
        (
            "ranges:\n\tx: 1",
            (
                "not valid YAML: line 2, column 1: found character '\\t' that cannot start any token "
                "(while scanning for the next token)"
            ),
        ),
    ],
)
def test_message(text: str, expected: str) -> None:
    with pytest.raises(ConfigFileError) as caught:
        parse(text.encode())
    assert str(caught.value) == expected
