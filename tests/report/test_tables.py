"""Tables that fit the terminal and lose nothing."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from dse.core.pareto import ParetoSet
from dse.report.table import front_table, studies_table, trials_table

WIDTHS = [60, 80, 200]


def console(width: int) -> Console:
    return Console(file=io.StringIO(), width=width)


def printed(to: Console) -> str:
    return to.file.getvalue()  # type: ignore[attr-defined]


def widest(text: str) -> int:
    return max(len(line) for line in text.splitlines())


@pytest.mark.parametrize("width", WIDTHS)
def test_a_front_fits_the_terminal_and_has_no_colour_codes(made_up, width: int) -> None:
    to = console(width)
    front_table(made_up.front, made_up.trials, exact=False, console=to)
    assert widest(printed(to)) <= width
    assert "\x1b" not in printed(to)


@pytest.mark.parametrize("width", WIDTHS)
def test_values_are_in_units_for_people(made_up, width: int) -> None:
    to = console(width)
    front_table(made_up.front, exact=False, console=to)
    assert "µJ" in printed(to)
    assert "512 KiB" in printed(to)


@pytest.mark.parametrize("width", WIDTHS)
def test_common_parameters_are_told_once(made_up, width: int) -> None:
    to = console(width)
    front_table(made_up.front, exact=False, console=to)
    assert printed(to).count("chip.banks") == 1


def test_the_knee_is_marked(made_up) -> None:
    to = console(200)
    front_table(made_up.front, exact=False, console=to)
    assert f"knee {made_up.front.knee.number} " in printed(to)


def test_an_exact_front_says_so(made_up) -> None:
    to = console(200)
    front_table(made_up.front, exact=True, console=to)
    assert printed(to).startswith("the exact front: 29 designs, hypervolume")


def test_nearest_misses_are_not_called_a_front(hopeless) -> None:
    to = console(200)
    front_table(hopeless.front, hopeless.trials, exact=False, console=to)
    assert "NO DESIGN KEEPS EVERY LIMIT" in printed(to)
    assert "chip.area <= 0.01 mm2 is missed by 998 %" in printed(to)


def test_an_empty_study_says_so(made_up) -> None:
    to = console(80)
    front_table(ParetoSet.of(made_up.problem, []), exact=False, console=to)
    assert "no design has been evaluated yet" in printed(to)


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
