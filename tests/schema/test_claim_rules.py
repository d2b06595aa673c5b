"""What a claim must be to count, and how the size of ours is held against print."""

from __future__ import annotations

from pathlib import Path

import pytest

from dse.errors import SpecErrors
from dse.schema.models import EvaluatorSpec
from dse.schema.study.claims import judging_metrics
from dse.schema.study.plan import plan_of
from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine

SPACE = """
space: s
parameters:
  rows: {ordinal: [1, 2, 4, 8]}
data:
  chips: {small: {peak: 3}}
"""

HEAD = """
study: claims
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {energy: {formula: rows * 3 mJ, unit: mJ}, gain: {formula: rows / 100}}}
  test: {use: expression, metrics: {accuracy: {formula: 1 - rows / 100}}}
  search: {use: expression, metrics: {accuracy: {formula: 1 - abs(rows - 4) / 100}}}
baselines:
  small: {rows: 1}
optimizer: random
budget: {trials: 4}
objectives:
  - minimize: chip.energy
"""

CLAIM = """
reproduces:
  - claim: what a paper says
    source: "Somebody, table 1"
    published: PUBLISHED
    proof: PROOF
    ours: OURS
    accept: ACCEPT
"""

GAIN = "least(chip.gain, rows == 4)"


def written(folder: Path, tail: str, head: str = HEAD) -> Path:
    (folder / "space.yaml").write_text(SPACE)
    (folder / "study.yaml").write_text(head + tail)
    return folder / "study.yaml"


def claimed(published: str, proof: str, accept: str, ours: str = GAIN) -> str:
    whole = CLAIM.replace("PUBLISHED", published).replace("PROOF", proof)
    whole = whole.replace("OURS", ours).replace("ACCEPT", accept)
    return whole.replace("    published: none\n", "")


REFUSED = {
    "no figure for exact": ("words of print", "exact", "ours == 0.04", ":18", "is no figure"),
    "no figure for held-out": ("it is good", "held-out", "ours == 0.04", ":18", "is no figure"),
    "print has nothing": ("none", "free", "ours == 0.04", ":16", "under 'finds:'"),
    "print says nothing": ("none in print", "free", "ours == 0.04", ":18", "under 'finds:'"),
    "by definition": ("by definition", "exact", "ours == 0.04", ":18", "'proof: identity'"),
    "words with a figure": ("up to 48x faster", "direction", "ours > 0", ":18", "write the figure"),
    "a sign as free": ("4 %", "free", "ours > 0", ":21", "tests a sign, and"),
    "a sign as exact": ("4 %", "exact", "ours <= 1", ":21", "'proof: direction'"),
    "a sign as held-out": ("4 %", "held-out", "0 < ours < 1", ":21", "requires a size"),
    "an interval of one": ("[4]", "free", "ours == 0.04", ":18", "is not an interval"),
    "an interval backwards": ("[5 %, 4 %]", "free", "ours == 0.04", ":18", "the lower one first"),
    "units that do not fit": ("4 mJ", "free", "ours == 0.04", ":18", "ours is in no unit"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_claim_that_cannot_count_is_refused_with_its_line_and_mend(tmp_path, case):
    published, proof, accept, line, words = REFUSED[case]
    with pytest.raises(SpecErrors) as caught:
        plan_of(written(tmp_path, claimed(published, proof, accept)))
    assert words in str(caught.value)
    assert f"study.yaml{line}" in str(caught.value)


ALLOWED = {
    "a figure": ("4 %", "free", "0.03 < ours < 0.05"),
    "a ratio": ("0.04x", "exact", "ours == 0.04"),
    "an interval": ("[3 %, 5 %]", "held-out", "0.03 < ours < 0.05"),
    "a bound": ("'< 5 %'", "free", "ours < 0.05"),
    "words for a direction": ("it grows", "direction", "ours > 0"),
    "an identity without print": ("none", "identity", "ours == 0.04"),
    "zero as a figure": ("0", "exact", "ours == 0"),
    "nothing in print and not reproduced": ("none", "not reproduced", "ours > 1"),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_a_claim_with_a_figure_or_words_of_print_is_read(tmp_path, case):
    assert plan_of(written(tmp_path, claimed(*ALLOWED[case]))).claims


AGREES = {
    "within a tenth, of a sign": ("4.2 %", "ours > 0", True),
    "beyond a tenth, of a sign": ("34 %", "ours > 0", False),
    "a window around print": ("5 %", "0.03 < ours < 0.07", True),
    "a window without print": ("5 %", "0.03 < ours < 0.045", False),
    "a window wider than a factor of two": ("5 %", "0.001 < ours < 0.5", False),
    "a window that is open": ("5 %", "ours > 0.01", False),
    "within an interval": ("[2 %, 9 %]", "ours > 0", True),
    "outside of an interval": ("[20 %, 90 %]", "ours > 0", False),
    "a bound that is kept": ("'< 5 %'", "ours > 0", True),
    "a bound that is not kept": ("'> 5 %'", "ours > 0", False),
    "words": ("it grows", "ours > 0", None),
    "no deviation, within a window": ("0", "0 <= ours < 0.05", True),
    "no deviation, within anything": ("0", "0 <= ours < 3", False),
    "a negative window": ("-3 %", "-0.05 < ours < 0.05", False),
}


@pytest.mark.parametrize("case", AGREES)
def test_the_size_agrees_within_a_window_around_print_or_a_tenth_of_it(tmp_path, case):
    published, accept, agrees = AGREES[case]
    (claim,) = plan_of(written(tmp_path, claimed(published, "direction", accept))).claims
    assert claim.agrees(0.04) is agrees


CHOSEN = {
    "most of the metric that judges": "most(test.accuracy)",
    "least of a difference with it": "least(test.accuracy - search.accuracy)",
    "a condition on it": "least(chip.gain, test.accuracy >= 0.9)",
    "picked by it": "where_most(chip.gain, test.accuracy)",
    "a condition of the pick": "where_most(chip.gain, rows, test.accuracy >= 0.9)",
}


@pytest.mark.parametrize("case", CHOSEN)
def test_a_claim_that_picks_trials_by_what_judges_them_is_refused(tmp_path, case):
    with pytest.raises(SpecErrors, match=r"(?s)study.yaml:20.*selects trials by 'test.accuracy'"):
        plan_of(written(tmp_path, claimed("4 %", "direction", "ours > 0", CHOSEN[case])))


def test_an_evaluator_on_the_test_images_judges_under_any_label():
    final = EvaluatorSpec.model_validate({"use": "compression.retraining", "split": "test"})
    names = ["final.accuracy", "dlrm.test_auc", "latest.accuracy", "contest.size"]
    assert judging_metrics(names, {"final": final}) == {"final.accuracy", "dlrm.test_auc"}


PICKED = {
    "reported where another is most": ("where_most(test.accuracy, search.accuracy)", 0.96),
    "or least": ("where_least(test.accuracy, search.accuracy)", 0.92),
    "of some": ("where_most(test.accuracy, search.accuracy, rows < 4)", 0.98),
    "the mean over ties": ("where_most(test.accuracy, 0 * rows)", 1 - 0.15 / 4),
    "not chosen at all": ("mean(test.accuracy, rows >= 4)", 0.94),
}


@pytest.mark.parametrize("case", PICKED)
def test_what_is_picked_on_one_metric_is_reported_on_another(tmp_path, case):
    ours, number = PICKED[case]
    path = written(tmp_path, claimed("4 %", "direction", "ours > 0", ours))
    study = StudyEngine.open(path, storage=MemoryStorage("memory://"))
    study.run()
    assert study.plan.claims[0].ours(study.problem, study.trials) == pytest.approx(number)


def test_a_stored_study_opens_although_its_claims_could_not_be_stated_today(tmp_path):
    path = written(tmp_path, claimed("none in print", "free", "ours > 0", "most(test.accuracy)"))
    texts = {str(one): one.read_text() for one in tmp_path.iterdir()}
    assert plan_of(path, kept=texts).claims


ASSUMED = """
assumes:
  - name: NAME
    value: VALUE
    interval: INTERVAL
    turns: TURNS
    source: a guess
"""


def assumed(turns: str, value: str, interval: str) -> str:
    whole = ASSUMED.replace("TURNS", turns).replace("NAME", "step").replace("VALUE", value)
    return claimed("4 %", "direction", "ours > 0") + whole.replace("INTERVAL", interval)


TURNED = {
    "a baseline": ("baselines.small.rows", "1", "[1, 2]", ("baselines", "small", "rows")),
    "an evaluator's option": (
        "chip.metrics.gain.formula",
        "rows / 100",
        "[rows / 200, rows / 50]",
        ("evaluators", "chip", "metrics", "gain", "formula"),
    ),
    "data of the space": (
        "space.data.chips.small.peak",
        "3",
        "[2, 4]",
        ("data", "chips", "small", "peak"),
    ),
    "every baseline": ("baselines.*.rows", "1", "[1, 8]", ("baselines", "small", "rows")),
}


@pytest.mark.parametrize("case", TURNED)
def test_an_assumption_is_found_where_it_stands(tmp_path, case):
    turns, value, interval, place = TURNED[case]
    (found,) = plan_of(written(tmp_path, assumed(turns, value, interval))).assumptions
    assert [own for _, own in found.places] == [place]


MISPLACED = {
    "no such place": ("chip.metrics.gian.formula", "1", "[0, 2]", ":27", "did you mean"),
    "no such baseline": ("baselines.smal.rows", "1", "[0, 2]", ":27", "baselines.small.rows"),
    "another value": ("baselines.small.rows", "2", "[1, 4]", ":27", "and 2 is assumed"),
    "nothing to turn": ("baselines.small.rows", "1", "[1, 1]", ":26", "is a single value"),
    "outside of its interval": ("baselines.small.rows", "1", "[2, 4]", ":26", "is not between"),
    "in other units": ("baselines.small.rows", "1", "[1 s, 2 s]", ":26", "not in one unit"),
    "a word among numbers": ("baselines.small.rows", "1", "[1, many]", ":26", "do not fit"),
}


@pytest.mark.parametrize("case", MISPLACED)
def test_an_assumption_that_cannot_be_turned_is_refused_with_its_line(tmp_path, case):
    turns, value, interval, line, words = MISPLACED[case]
    with pytest.raises(SpecErrors) as caught:
        plan_of(written(tmp_path, assumed(turns, value, interval)))
    assert words in str(caught.value)
    assert f"study.yaml{line}" in str(caught.value)
