"""Tables that fit the terminal and lose nothing."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from dse.core.pareto import ParetoSet
from dse.core.proof import Proof
from dse.core.trial import State
from dse.report.text.terminal_table import (
    Lane,
    print_lanes,
    print_lines,
    print_split,
    results_console,
)
from dse.report.text.trial_tables import front_table, studies_table, trials_table
from dse.report.words import number_text

WIDTHS = [40, 60, 80, 200]


def console(width: int) -> Console:
    return Console(file=io.StringIO(), width=width)


def printed(to: Console) -> str:
    return to.file.getvalue()  # type: ignore[attr-defined]


def widest(text: str) -> int:
    return max(len(line) for line in text.splitlines())


@pytest.mark.parametrize("width", WIDTHS)
def test_a_front_fits_the_terminal_and_has_no_colour_codes(made_up, width: int) -> None:
    to = console(width)
    front_table(made_up.front, made_up.trials, proof=Proof(), console=to)
    assert widest(printed(to)) <= width
    assert "\x1b" not in printed(to)


@pytest.mark.parametrize("width", WIDTHS)
def test_values_are_in_units_for_people(made_up, width: int) -> None:
    to = console(width)
    front_table(made_up.front, proof=Proof(), console=to)
    assert "µJ" in printed(to)
    assert "512 KiB" in printed(to)


@pytest.mark.parametrize("width", WIDTHS)
def test_common_parameters_are_told_once(made_up, width: int) -> None:
    to = console(width)
    front_table(made_up.front, proof=Proof(), console=to)
    assert printed(to).count("chip.banks") == 1


def test_the_knee_is_marked(made_up) -> None:
    to = console(200)
    front_table(made_up.front, proof=Proof(), console=to)
    assert f"knee {made_up.front.knee.number} " in printed(to)


def test_an_exact_front_says_so(made_up) -> None:
    to = console(200)
    front_table(made_up.front, proof=Proof(searched=True), console=to)
    assert printed(to).startswith("the exact front: 29 designs, hypervolume")


def test_nearest_misses_are_not_called_a_front(hopeless) -> None:
    to = console(200)
    front_table(hopeless.front, hopeless.trials, proof=Proof(), console=to)
    assert "NO DESIGN KEEPS EVERY LIMIT" in printed(to)
    assert "chip.area <= 0.01 mm2 is missed by 998 %" in printed(to)


def test_an_empty_study_says_so(made_up) -> None:
    to = console(80)
    front_table(ParetoSet.of(made_up.problem, []), proof=Proof(), console=to)
    assert "no design has been evaluated yet" in printed(to)


def test_a_study_whose_designs_all_failed_says_where_the_reasons_are(made_up) -> None:
    to = console(200)
    failed = [trial for trial in made_up.trials if trial.state is State.FAILED]
    front_table(ParetoSet.of(made_up.problem, failed), failed, proof=Proof(), console=to)
    words = f"none of {len(failed)} evaluated designs has a number for each objective: dse trials"
    assert words in printed(to)


def test_words_in_brackets_are_printed_as_they_are(made_up) -> None:
    design = {**made_up.trials[0].design, "weight_format": "[red]int8[/red]"}
    trial = replace(made_up.front.trials[0], design=design)
    to = console(200)
    trials_table(made_up.problem, [trial], console=to)
    assert "[red]int8[/red]" in printed(to)


@pytest.mark.parametrize("width", WIDTHS)
def test_trials_tell_why_they_failed(made_up, width: int) -> None:
    to = console(width)
    trials_table(made_up.problem, made_up.trials[:6], console=to)
    assert "failed" in printed(to)
    assert "timeout:" in printed(to)
    assert widest(printed(to)) <= width


@pytest.mark.slow
def test_of_very_many_trials_the_latest_are_printed(large) -> None:
    to = console(200)
    trials_table(large.problem, large.trials, console=to)
    assert "4500 earlier trials are left out" in printed(to)
    assert " 4999 " in printed(to)


def test_studies_are_a_line_each() -> None:
    to = console(80)
    rows = [
        {"study": "a", "trials": 12, "question": "what?"},
        {"study": "b", "trials": 3, "question": ""},
    ]
    studies_table(rows, console=to)
    assert len([line for line in printed(to).splitlines() if line.strip()]) == 4


LANES = [
    Lane(heading="parameter", cells=["compress.activation_format", "chip.rows"]),
    Lane(heading="domain", cells=["int8, int6, int4, fp8_e4m3, fp8_e5m2", "4 .. 64"]),
    Lane(heading="designs", cells=["1,234", ""], right=True),
]
"""The longest words fill 50 columns with the gaps between them, whole cells fill 78."""


def words(text: str) -> list[str]:
    return text.replace("─", "").split()


@pytest.mark.parametrize("width", [78, 100])
def test_a_table_that_fits_has_a_line_for_each_row(width: int) -> None:
    to = console(width)
    print_lanes(to, LANES)
    assert "compress.activation_format   int8, int6, int4, fp8_e4m3, fp8_e5m2" in printed(to)


@pytest.mark.parametrize("width", [*range(50, 78, 4), 77])
def test_a_table_is_folded_between_words(width: int) -> None:
    to = console(width)
    print_lanes(to, LANES)
    assert widest(printed(to)) <= width
    told = words(printed(to))
    assert {word for lane in LANES for cell in lane.cells for word in cell.split()} <= set(told)
    assert told[:3] == ["parameter", "domain", "designs"]


@pytest.mark.parametrize("width", [30, 40, 48])
def test_where_words_would_be_broken_each_row_is_a_record(width: int) -> None:
    to = console(width)
    print_lanes(to, LANES)
    assert widest(printed(to)) <= width
    assert printed(to).startswith("compress.activation_format\n  domain: int8, int6,")
    assert "designs: 1,234" in printed(to)
    assert printed(to).count("designs") == 1  # an empty cell is not told


@pytest.mark.parametrize("width", [12, 20, 40])
def test_a_word_longer_than_the_terminal_is_broken_and_whole(width: int) -> None:
    to = console(width)
    print_lanes(to, [Lane(heading="a", cells=["x" * 50]), Lane(heading="b", cells=["y"])])
    assert widest(printed(to)) <= width
    assert printed(to).count("x") == 50


def test_split_tables_repeat_their_key_and_leave_no_lane_out() -> None:
    to = console(20)
    lanes = [Lane(heading=f"metric-{n}", cells=[f"{n}.5"], right=True) for n in range(6)]
    print_split(to, Lane(heading="trial", cells=["7"]), lanes)
    assert printed(to).count("trial") == 6
    assert all(f"metric-{n}" in printed(to) for n in range(6))


def test_metrics_that_are_left_out_are_named_with_the_way_to_see_them(made_up) -> None:
    to = console(60)
    front_table(made_up.front, proof=Proof(), console=to)
    told = " ".join(printed(to).split())
    assert "1 more metric does not fit here (chip. area)" not in told
    assert "1 more metric does not fit here (chip.area): --format csv or json has all" in told


def test_at_forty_columns_every_number_and_name_is_whole(made_up) -> None:
    to = console(40)
    front_table(made_up.front, proof=Proof(), console=to)
    told = set(re.split(r"[\s=,]+", printed(to)))
    numbers = {
        number_text(trial.metrics[name], unit).split()[0]
        for trial in made_up.front.trials
        for name, unit in (("chip.energy", "J"), ("chip.latency", "s"))
    }
    assert numbers <= told
    assert {"compress.sparsity", "weight_format", "chip.clock", "chip.buffer"} <= told


def test_what_is_no_terminal_gets_lines_as_long_as_they_are(made_up, monkeypatch, capsys) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    front_table(made_up.front, made_up.trials, proof=Proof())
    told = capsys.readouterr().out.splitlines()
    assert sum("knee" in line for line in told) == 1
    assert len([line for line in told if " µJ " in line]) == len(made_up.front.trials)
    assert results_console().width > 10_000


def test_a_width_that_was_asked_for_holds_without_a_terminal_too(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    assert results_console().width == 72


def test_lines_are_folded_between_words_and_go_on_further_in() -> None:
    to = console(24)
    print_lines(["  choice: grey-box, for it is measured", "short"], to)
    assert printed(to).splitlines() == [
        "  choice: grey-box, for",
        "      it is measured",
        "short",
    ]
