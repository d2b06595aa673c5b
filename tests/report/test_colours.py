"""The colours of the figures can be told apart by people who see fewer of them."""

from itertools import combinations

import numpy as np
import pytest

from dse.report.figures.style import BLUE, GREY, ORANGE, SERIES, VERMILION

# Machado, Oliveira, Fernandes: A Physiologically-based Model for Simulation of Color Vision
# Deficiency, 2009: severity 1, on linear RGB.
SEEN = {
    "everything": np.eye(3),
    "no long waves": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no middle waves": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "no short waves": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
# sRGB's primaries to XYZ, and its white, IEC 61966-2-1.
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
ENOUGH = 6 * 2.3
"""Six differences that are just seen in CIELAB.

Source:
    Mahy, Van Eycken, Oosterlinck: Evaluation of Uniform Color Spaces, 1994: 2.3 is just seen.
"""


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    shares = XYZ @ np.clip(rgb, 0, 1) / XYZ.sum(axis=1)
    cubes = np.where(shares > (6 / 29) ** 3, np.cbrt(shares), shares * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * cubes[1] - 16, 500 * (cubes[0] - cubes[1]), 200 * (cubes[1] - cubes[2])])


def least_difference(colours, seen: str) -> float:
    places = [lab(SEEN[seen] @ linear(colour)) for colour in colours]
    return min(float(np.linalg.norm(a - b)) for a, b in combinations(places, 2))


@pytest.mark.parametrize("seen", SEEN)
def test_what_a_trade_off_tells_by_colour_is_told_apart_by_everybody(seen: str) -> None:
    """Front, knee, limits and other trials; and the two ends of a scale."""
    assert least_difference([BLUE, ORANGE, GREY, VERMILION], seen) > ENOUGH


@pytest.mark.parametrize("seen", SEEN)
def test_no_two_of_the_first_six_groups_look_alike(seen: str) -> None:
    assert least_difference(SERIES[:6], seen) > ENOUGH


def test_a_red_and_a_green_that_most_people_tell_apart_would_not_pass() -> None:
    pair = ["#CC4444", "#6B7F1F"]
    assert least_difference(pair, "everything") > 5 * ENOUGH
    assert least_difference(pair, "no middle waves") < ENOUGH
