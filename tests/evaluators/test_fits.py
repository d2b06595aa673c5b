"""What was fitted is not what was judged."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from dse_evaluators.clusters.collectives import calibrations
from dse_evaluators.fits import SUFFIX, fits_in

FILES = sorted(Path(str(files("dse_evaluators"))).rglob(f"*{SUFFIX}"))
FIT = {
    "name": "link",
    "constants": {"latency_s": 1e-6},
    "fitted_on": ["a", "b"],
    "judged_on": ["c"],
    "attempts": 1,
    "judged_mean": 0.1,
    "judged_max": 0.1,
    "source": "nobody",
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_fit_names_its_points_and_judges_none_that_it_was_fitted_on(path: Path):
    assert fits_in(path)


@pytest.mark.parametrize("series", calibrations().values(), ids=lambda one: one.source[:20])
def test_no_collective_is_judged_on_a_size_that_it_was_fitted_to(series):
    assert not set(series.fitted_bytes) & set(series.judged_bytes)


@pytest.mark.parametrize(
    ("broken", "word"),
    [
        ({"judged_on": ["b", "c"]}, "fitted and judged on b"),
        ({"judged_on": []}, "judged_on is empty"),
        ({"fitted_on": ["a", "a"]}, "listed twice"),
    ],
)
def test_a_fit_that_judges_itself_is_refused(tmp_path: Path, broken: dict, word: str):
    path = tmp_path / f"link{SUFFIX}"
    path.write_text(json.dumps([{**FIT, **broken}]), encoding="utf-8")
    with pytest.raises(ValueError, match=word):
        fits_in(path)


def test_two_fits_of_one_name_are_refused(tmp_path: Path):
    path = tmp_path / f"link{SUFFIX}"
    path.write_text(json.dumps([FIT, FIT]), encoding="utf-8")
    with pytest.raises(ValueError, match="the same name"):
        fits_in(path)
