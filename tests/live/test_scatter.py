"""Points land in the characters where they belong."""

import io

import numpy as np
import pytest
from rich.console import Console

from dse.core.expressions.parser import parse
from dse.core.objective import Objective
from dse.report.axes import PlotAxis
from dse.services.progress.picture import axis_of
from dse.services.progress.text_scatter import Scatter, cells

NOTHING = np.zeros((0, 2))


def points(*pairs):
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


def drawn(scatter: Scatter, *, width: int = 30, unicode: bool = True) -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding="utf-8" if unicode else "ascii")
    console = Console(file=file, width=width)
    console.print(scatter)
    file.flush()
    return file.buffer.getvalue().decode(file.encoding).splitlines()  # type: ignore[attr-defined]


def square(bright=NOTHING, faint=NOTHING, **options) -> Scatter:
    x, y = PlotAxis(name="cost", low=0, high=10), PlotAxis(name="quality", low=0, high=1)
    return Scatter(x=x, y=y, faint=faint, bright=bright, rows=4, **options)


@pytest.mark.parametrize(
    ("share", "place", "bit"),
    [
        ((0, 0), (2, 0), 0x40),
        ((1, 0), (2, 4), 0x80),
        ((0, 1), (0, 0), 0x01),
        ((1, 1), (0, 4), 0x08),
        ((4 / 9, 6 / 11), (1, 2), 0x02),
    ],
    ids=["lower left", "lower right", "upper left", "upper right", "middle"],
)
def test_a_point_raises_its_own_dot_and_no_other(share, place, bit) -> None:
    found = cells(points(share), (3, 5))
    assert found[place] == bit
    assert found.sum() == bit


def test_two_points_in_one_character_raise_two_dots() -> None:
    assert cells(points((0, 0), (1 / 9, 0)), (3, 5))[2, 0] == 0x40 | 0x80


def test_equal_points_raise_one_dot() -> None:
    assert cells(points((0.5, 0.5), (0.5, 0.5)), (3, 5)).astype(bool).sum() == 1


@pytest.mark.parametrize("far", [np.inf, -np.inf, np.nan, 1.01, -0.01])
def test_what_lies_outside_is_left_out_and_counted(far) -> None:
    assert not cells(points((far, 0.5)), (3, 5)).any()
    assert square(points((10 * far, 0.5))).hidden == 1


def test_no_points_draw_axes_alone() -> None:
    lines = drawn(square())
    assert lines[0].startswith("quality")
    assert [line.strip() for line in lines[1:5]] == ["1 │", "│", "│", "0 │"]


def test_more_is_to_the_right_and_up() -> None:
    lines = drawn(square(faint=points((10, 1), (0, 0))), unicode=False)
    assert lines[1].index(".") == 29
    assert lines[4].index(".") == 3


def test_the_front_stands_over_other_points_and_is_larger() -> None:
    here = points((10, 1))
    assert drawn(square(faint=here))[1][-1] == "⠈"
    assert drawn(square(bright=here, faint=here))[1][-1] == "⠛"
    assert drawn(square(bright=here, line=True))[1][-1] == "⠈"


def test_without_unicode_it_is_plain_ascii() -> None:
    lines = drawn(square(points((10, 1)), points((0, 0))), unicode=False)
    assert "\n".join(lines).isascii()
    assert lines[1].endswith("o")
    assert "." in lines[4]


@pytest.mark.parametrize("width", [8, 20, 40, 200])
def test_no_line_is_wider_than_the_terminal(width) -> None:
    assert max(map(len, drawn(square(points((1, 1))), width=width))) <= width


def test_ends_and_titles_stand_at_the_axes() -> None:
    x = PlotAxis(name="chip.energy", low=1e-6, high=2e-3, unit="J", aim="less is better", log=True)
    y = PlotAxis(name="quality", low=0.5, high=1.0, aim="more is better")
    lines = drawn(Scatter(x=x, y=y, faint=NOTHING, bright=NOTHING, rows=3), width=70)
    assert lines[0].strip() == "quality (more is better)"
    assert lines[-1].split() == [
        *["1", "µJ", "chip.energy", "(less", "is", "better,", "log", "scale)", "2", "mJ"],
    ]


def objective(goal="minimize", **more) -> Objective:
    return Objective(expression=parse("m.a"), goal=goal, **more)


def test_an_axis_is_told_in_the_objectives_own_sign() -> None:
    axis = axis_of(objective("maximize"), np.array([-0.9, -0.8]), np.array([-0.9, -0.8, -0.75]))
    assert (axis.low, axis.high) == (0.75, 0.9)
    assert axis.aim == "more is better"


def test_a_far_answer_does_not_press_the_front_into_a_corner() -> None:
    front, answers = np.array([1.0, 1.5, 2.0]), np.array([1.0, 1.5, 2.0, 2.5, 1e3, 1e6])
    axis = axis_of(objective(), front, answers)
    assert axis.high == 2.5
    assert not axis.log


def test_one_answer_stands_in_the_middle() -> None:
    axis = axis_of(objective(), np.array([3.0]), np.array([3.0]))
    assert axis.shares(np.array([3.0, 3.1]))[0] == 0.5


def test_an_axis_over_decades_is_logarithmic() -> None:
    axis = axis_of(objective(), np.array([1.0, 1e4]), np.array([1.0, 1e4]))
    assert axis.log
    assert axis.shares(np.array([1e2]))[0] == pytest.approx(0.5)


def test_no_best_answer_is_lost_at_the_end_of_an_axis() -> None:
    answers = np.random.default_rng(0).lognormal(sigma=3.0, size=(300, 2))
    x, y = (axis_of(objective(), answers[:5, at], answers[:, at]) for at in (0, 1))
    best = np.array([[answers[:5, 0].min(), answers[:5, 1].max()]])
    assert x.log
    assert Scatter(x=x, y=y, faint=NOTHING, bright=best, rows=3).hidden == 0


def test_an_axis_through_zero_is_not_logarithmic() -> None:
    assert not axis_of(objective(), np.array([0.0, 1e4]), np.array([0.0, 1e4])).log
