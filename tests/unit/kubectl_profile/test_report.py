"""What people and programs get to see of a profile."""

import json
from pathlib import Path
from typing import Final

import yaml
from rich.table import Table

from dsd_runtime.schedule import Ranges, from_triples
from kubectl_dsd.output import to_yaml
from kubectl_dsd.profile.picture import save
from kubectl_dsd.profile.plan import Cell, Plan
from kubectl_dsd.profile.plot import draw, relative
from kubectl_dsd.profile.report import parts, plan_lines
from kubectl_dsd.profile.results import Results, Subject, document
from kubectl_dsd.profile.window import Remark, Sample
from kubectl_dsd.schedule import files
from kubectl_dsd.top.rates import Rates
from kubectl_dsd.wanted import Schedule

PLAN: Final = Plan((1, 4, 16), (0, 3), rounds=3, duration=8.0, warm_up=0.0)
SPEED: Final = {(1, 0): 50.0, (1, 3): 80.0, (4, 0): 170.0, (4, 3): 230.0, (16, 0): 420.0, (16, 3): 380.0}


ZERO: Final = from_triples([(1, 64, 0)])


def results(rounds: int = 3, present: Ranges = ZERO, remark: bool = False, noise: float = 0.0) -> Results:
    """Speeds as above, one percent apart from round to round; `rounds` of them whole, and the start of another.

    With `noise`, K=3 is by that share faster or slower than it should be, by turns.
    """
    subject = Subject("team", "demo", "ngram", ("demo-a",), 1, 64, Schedule(present))
    cells = PLAN.cells()[: rounds * 6 + (2 if rounds < 3 else 0)]
    return Results(subject, PLAN, tuple(sample(cell, remark, noise) for cell in cells))


def sample(cell: Cell, remark: bool, noise: float) -> Sample:
    """A sample with the speed of its cell."""
    speed = SPEED[cell.concurrency, cell.k] * (1 + cell.round / 100)
    speed *= 1 + (noise if cell.round % 2 else -noise) * (cell.k > 0)
    rates = Rates(8.0, speed, 10.0, speed / 10, 1.5, float(cell.concurrency), 0.6 if cell.k else None)
    odd = (Remark("shared", "9% of the tokens went to other clients"),) if remark and cell.round == 0 else ()
    return Sample(cell, 8.0, speed, rates, 30.0, 1.0, speed * 8, int(speed * 8), odd)


def text(found: Results) -> str:
    """All parts that are text."""
    return "\n".join(part for part in parts(found) if isinstance(part, str))


def test_the_best_schedule_is_yaml_that_reads_back() -> None:
    shown = text(results())
    block = shown[shown.index("schedule:") :]

    assert yaml.safe_load(block)["schedule"] == [
        {"startBatchSize": 1, "endBatchSize": 4, "numSpeculativeTokens": 3},
        {"startBatchSize": 5, "endBatchSize": 64, "numSpeculativeTokens": 0},
    ]
    assert "# certain; 3 rounds" in shown
    assert "above 16 nothing was measured" in shown


def test_each_choice_has_its_reason_and_the_gain_its_interval() -> None:
    shown = text(results())

    assert shown.count("is the fastest, beyond the interval of every other K") == 3
    assert "against the schedule in force: +29.4 % (+29.4 % to +29.4 %)" in shown


def test_a_schedule_that_is_the_best_already_is_told() -> None:
    found = results()
    same = Results(Subject("team", "demo", "ngram", ("demo-a",), 1, 64, found.best), found.plan, found.all_samples)

    assert "the schedule in force says the same already" in text(same)


def test_rounds_that_were_interrupted_are_left_out() -> None:
    found = results(rounds=2)

    assert (found.rounds, len(found.samples), len(found.all_samples)) == (2, 12, 14)
    assert len(document(found)["samples"]) == 14


def test_what_was_odd_is_told_once_with_its_count() -> None:
    assert "6 of 18 windows: 9% of the tokens went to other clients" in text(results(remark=True))
    assert "Odd:" not in text(results())


def test_the_clients_count_stands_beside_the_engines() -> None:
    assert "the engines emitted 32239 tokens, and clients got 32234" in text(results())


def test_a_k_of_the_present_schedule_that_was_not_measured_is_named() -> None:
    assert "K=2 was not measured" in text(results(present=from_triples([(1, 64, 2)])))


def test_the_document_is_json_with_everything() -> None:
    found = json.loads(json.dumps(document(results())))

    assert len(found["samples"]) == 18
    assert len(found["cells"]) == 6
    assert [v["numSpeculativeTokens"] for v in found["verdicts"]] == [3, 3, 0]
    assert found["bestSchedule"][0]["endBatchSize"] == 4
    assert found["gainOverPresent"]["median"] > 1.2


def test_schedule_set_takes_the_document(tmp_path: Path) -> None:
    file = tmp_path / "profile.yaml"
    file.write_text(to_yaml(document(results())))

    assert files.read(str(file)).ranges == results().best.ranges


def test_the_tables_mark_the_best() -> None:
    first = next(part for part in parts(results()) if isinstance(part, Table))
    columns = {str(column.header): [str(cell) for cell in column.cells] for column in first.columns}

    assert [cell.endswith("*") for cell in columns["K=3"]] == [True, True, False]
    assert columns["K=0"][2].startswith("424 (")


def test_the_plot_is_relative_to_the_smallest_k() -> None:
    throughput = results().throughput

    assert relative(throughput)[0] == [1.0, 1.0, 1.0]
    assert [round(v, 2) for v in relative(throughput)[3]] == [1.6, 1.35, 0.9]
    shown = draw(throughput)
    assert "K=3" in shown
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 76


def test_one_concurrency_has_no_plot() -> None:
    assert draw({4: {0: [1.0], 3: [2.0]}}) == ""


def test_the_picture_is_an_svg_with_tables_and_plot(tmp_path: Path) -> None:
    save(parts(results()), tmp_path / "profile.svg")

    shown = (tmp_path / "profile.svg").read_text()
    assert shown.startswith("<svg")
    assert "url(" not in shown.replace("url(#", ""), "nothing is fetched when it is opened"


def test_the_plan_says_how_long_it_takes() -> None:
    shown = "\n".join(plan_lines(results().subject, PLAN, "20 built-in"))

    assert "18 of 8 s" in shown
    assert "3 min" in shown
    assert "put back" in shown
