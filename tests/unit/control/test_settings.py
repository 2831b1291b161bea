"""Settings from the environment, and the command line around them."""

import json

import pytest
from pydantic import ValidationError

from dsd_operator.__main__ import main
from dsd_operator.settings import Settings, SettingsError, from_environment, variable

NEEDED = {
    "DSD_OPERATOR_RUNTIME_IMAGE": "repo/runtime@sha256:" + "a" * 64,
    "DSD_OPERATOR_NAMESPACE": "dsd-system",
    "DSD_OPERATOR_SERVICE_ACCOUNT": "dsd-operator",
}


def test_defaults() -> None:
    settings = from_environment(NEEDED)
    assert settings.runtime_image == NEEDED["DSD_OPERATOR_RUNTIME_IMAGE"]
    assert (settings.watch_namespaces, settings.log_format, settings.log_level) == ((), "json", "INFO")
    assert (settings.metrics_port, settings.health_port, settings.resync_seconds) == (8080, 8081, 600.0)


def test_all_can_be_set() -> None:
    given = {
        "WATCH_NAMESPACES": " a, b ,,a", "LOG_FORMAT": "text", "LOG_LEVEL": "debug", "METRICS_PORT": "1",
        "HEALTH_PORT": "2", "RESYNC_SECONDS": "0.5", "WORKERS": "4",
    }  # fmt: skip
    settings = from_environment({**NEEDED, **{f"DSD_OPERATOR_{name}": value for name, value in given.items()}})
    assert settings.watch_namespaces == ("a", "b")
    assert (settings.log_format, settings.log_level) == ("text", "DEBUG")
    assert (settings.metrics_port, settings.health_port, settings.resync_seconds, settings.workers) == (1, 2, 0.5, 4)


def test_empty_is_unset() -> None:
    assert from_environment({**NEEDED, "DSD_OPERATOR_METRICS_PORT": " "}).metrics_port == 8080


def test_names_of_services_are_no_settings() -> None:
    """A Service called dsd-operator puts such variables into every pod of old clusters."""
    links = {"DSD_OPERATOR_PORT": "tcp://10.0.0.1:8080", "DSD_OPERATOR_SERVICE_HOST": "10.0.0.1"}
    assert from_environment({**NEEDED, **links}) == from_environment(NEEDED)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("METRICS_PORT", "http"),
        ("HEALTH_PORT", "70000"),
        ("RESYNC_SECONDS", "0"),
        ("LOG_FORMAT", "xml"),
        ("WORKERS", "0"),
        ("POD_LABELS", "app"),
        ("MONITORING_PEERS", "monitoring"),
        ("MONITORING_PEERS", '{"podSelector": {}}'),
    ],
)
def test_a_mistake_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"DSD_OPERATOR_{name}: "):
        from_environment({**NEEDED, f"DSD_OPERATOR_{name}": value})


def test_labels_and_peers_are_read_as_the_chart_writes_them() -> None:
    peers = '[{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]'
    given = {"DSD_OPERATOR_POD_LABELS": "a/b=c, d=", "DSD_OPERATOR_MONITORING_PEERS": peers}
    settings = from_environment({**NEEDED, **given})
    assert settings.pod_labels == {"a/b": "c", "d": ""}
    assert settings.monitoring_peers == tuple(json.loads(peers))


def test_what_is_missing_is_named() -> None:
    with pytest.raises(SettingsError) as caught:
        from_environment({})
    assert str(caught.value).splitlines() == [f"{name}: is not set" for name in NEEDED]


def test_settings_are_frozen() -> None:
    settings = from_environment(NEEDED)
    with pytest.raises(ValidationError):
        settings.workers = 1


def test_help_names_every_variable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(variable(name) in text for name in Settings.model_fields)


def test_an_incomplete_environment_ends_with_status_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NEEDED:
        monkeypatch.delenv(name, raising=False)
    assert main([]) == 2
    assert "DSD_OPERATOR_RUNTIME_IMAGE: is not set" in capsys.readouterr().err
