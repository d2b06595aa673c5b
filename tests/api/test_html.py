"""What notebooks are shown: whole, escaped, and there for every study, however odd."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from dse import InfeasibleError, Metric, Space, Study, evaluator
from dse.api.notebook.live import running_html
from dse.api.notebook.parts import LONGEST
from dse.api.notebook.points import plane, points_of
from dse.api.notebook.svg_scatter import scatter
from dse.api.notebook.trial_view import trial_html
from dse.api.notebook.trials_view import MOST_COLUMNS, MOST_ROWS, trials_html
from dse.core.pareto import ParetoSet
from dse.core.trial import State
from dse.core.trials import Trials
from dse.report.axes import ticks
from dse.schema.study.budget import Budget
from dse.services.progress.panel import StudyPanel

HOSTILE = "</script><script>alert('x')</script><img src=x onerror=alert(1)>\"&"
TIME = Metric("time", "us", goal="minimize")
MEMORY = Metric("memory", "KiB", goal="minimize")
SPACE = {"tile": [16, 32, 64, 128], "stages": (1, 6)}
EMPTY_ELEMENTS = {"circle", "path", "meta", "br"}


def cost(tile, stages):
    return {"time": 1000 / tile + 40 / stages, "memory": tile * tile * stages / 512}


def fails(tile, stages):
    raise RuntimeError(HOSTILE + "x" * 10_000)


def mixed(tile, stages):
    if tile == 16:
        raise InfeasibleError("it does not fit")
    if stages == 3:
        raise ValueError("no power")
    return {"time": (1000 / tile, 2.0), "memory": tile * stages}


def three(tile, stages):
    return {**cost(tile, stages), "loss": 1 / tile / stages}


def huge(tile, stages):
    return {"time": 1e305 * tile * (-1) ** stages, "memory": 1e-300 * tile}


def study_of(function, *metrics, run=10, **asked):
    asked = {"optimizer": "random", **asked}
    made = Study("odd", SPACE, {"f": evaluator(*metrics)(function)}, storage="memory://", **asked)
    if run:
        made.run(measurements=run, on_error="keep")
    return made


class Elements(HTMLParser):
    """The names of all elements, each of which must be closed."""

    def __init__(self, text):
        super().__init__()
        self.names, self._open = [], []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in EMPTY_ELEMENTS:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag not in EMPTY_ELEMENTS:
            assert self._open.pop() == tag


ODD = {
    "new": lambda: study_of(cost, TIME, MEMORY, run=0),
    "one objective": lambda: study_of(cost, TIME, Metric("memory")),
    "two": lambda: study_of(cost, TIME, MEMORY),
    "three": lambda: study_of(three, TIME, MEMORY, Metric("loss", goal="maximize")),
    "all failed": lambda: study_of(fails, TIME, MEMORY),
    "some failed": lambda: study_of(mixed, TIME, MEMORY, question=HOSTILE + "x" * 10_000),
    "within a limit": lambda: study_of(cost, TIME, MEMORY, constraints="f.time <= 50 us"),
    "beyond every limit": lambda: study_of(cost, TIME, MEMORY, constraints="f.time <= 1 us"),
    "all alike": lambda: study_of(
        lambda tile: {"time": 5, "memory": 0}, TIME, MEMORY, unread="stages"
    ),
    "all alike, one": lambda: study_of(lambda tile: {"time": 5}, TIME, unread="stages"),
    "huge": lambda: study_of(
        huge, Metric("time", goal="minimize"), Metric("memory", goal="maximize")
    ),
}


def test_where_what_is_near_the_best_is_one_number_there_is_an_axis():
    """Seen in a live cell: three of the first four designs took equally long."""
    problem = study_of(cost, TIME, MEMORY, run=0).problem
    alike = np.array([[5.0, 1.0], [5.0, 2.0], [5.0, 3.0], [9.0, 4.0]])
    drawn = plane(problem.objectives, alike[:1], alike[1:], alike[:0])
    assert drawn.x.low < 5.0 < drawn.x.high
    assert "nan" not in scatter(drawn, "words")


def test_of_many_trials_the_latest_are_shown_and_how_many_there_are():
    study = study_of(cost, TIME, MEMORY, run=20)
    text = trials_html(study.trials, study.problem)
    assert text.count("<tr>") == MOST_ROWS + 1
    assert "20 done" in text
    assert "and 8 earlier trials: study.to_pandas()" in text
    assert " µs</td>" in text
    assert re.findall(r"<th [^>]*>([\w.]+)", text)[-2:] == ["tile", "stages"]  # as in the space
    assert f'<td class="dse-number">{study.trials[-1].number}</td>' in text
    assert repr(study.trials).endswith(", and 17 more])")
    assert trials_html(study.trials[:0]).count("none yet") == 1


def test_of_many_columns_some_are_shown_and_faults_with_their_reason():
    space = {f"p{place:02}": (1, 2) for place in range(MOST_COLUMNS + 3)}
    failing = {"f": evaluator(TIME)(lambda p00: 1 / 0)}
    study = Study("wide", space, failing, storage="memory://", unread=list(space)[1:])
    study.run(trials=2, on_error="keep")
    text = trials_html(study.trials, study.problem)
    assert "raised: ZeroDivisionError: division by zero" in text
    assert text.count('<th scope="col" class="dse-number">p') == MOST_COLUMNS
    assert "and 3 more parameters: " in text


def test_without_its_style_a_drawing_has_small_letters():
    """As GitHub shows notebooks."""
    (svg,) = re.findall(r"<svg [^>]*>", study_of(cost, TIME, MEMORY)._repr_html_())
    assert 'font-size="11"' in svg


def test_where_styles_and_drawings_are_taken_out_no_heap_of_numbers_is_left():
    """JupyterLab does so with a stranger's notebook; an empty ``hidden`` it takes out too."""
    study = study_of(cost, TIME, MEMORY)
    panel = StudyPanel(study.engine, Budget())
    for text in (study._repr_html_(), study.front._repr_html_(), running_html(panel, "running")):
        hidden = r'<figure hidden="hidden" style="display:none">.*?</figure>'
        assert "<svg" in text
        left = re.sub(hidden, "", text, flags=re.DOTALL)
        assert not {"<svg", "<text", "<figcaption"} & set(re.findall(r"<\w+", left))
        assert "(The drawing is shown where the notebook is trusted" in left


@pytest.mark.parametrize("kind", ODD)
def test_every_study_its_front_and_its_trials_are_shown(kind):
    study = ODD[kind]()
    trials = [trial_html(trial, study.problem) for trial in study.trials]
    trials += [trials_html(study.trials, study.problem), trials_html(study.trials)]
    for text in (study._repr_html_(), study.front._repr_html_(), *trials):
        names = Elements(text).names
        assert names[0] == "div"
        assert not {"script", "img", "a", "link"} & set(names)
        assert "x" * (LONGEST * 10) not in text
        assert "nan" not in text


def test_a_front_has_a_point_with_words_for_each_design_and_a_ring_around_the_knee():
    front = study_of(cost, TIME, MEMORY, run=12).front
    text = front._repr_html_()
    assert text.count("<title>trial ") == len(front)
    assert text.count("<circle") == len(front) + 1
    assert f'<td class="dse-number">knee {front.knee.number}</td>' in text


def test_a_long_front_says_where_the_rest_is():
    space = {"tile": (1, 400)}
    by_tile = evaluator(TIME, MEMORY)(lambda tile: {"time": 1 / tile, "memory": tile})
    study = Study("long", space, {"f": by_tile}, storage="memory://", optimizer="random")
    study.run(measurements=43)
    text = study.front._repr_html_()
    assert len(study.front) > 30
    shown = text.count("<tr><td")
    assert shown in (12, 13)
    assert f"and {len(study.front) - shown} more designs: .to_pandas()" in text


def test_a_study_tells_its_progress_its_question_and_its_faults():
    text = study_of(mixed, TIME, MEMORY, budget={"measurements": 20})._repr_html_()
    assert "10 of 20 measurements" in text
    assert "f.time [us] and f.memory [KiB]" in text
    assert re.search(r"\d+ infeasible: it does not fit", text)
    assert re.search(r"\d+ raised: ValueError: no power", text)


def test_a_running_front_is_a_staircase_in_order():
    study = study_of(cost, TIME, MEMORY, run=0)
    panel = StudyPanel(study.engine, Budget(measurements=12), clock=lambda: 0.0)
    assert "no design to draw yet" in running_html(panel, "running")
    study.run(measurements=12, on_finished=panel.finished)
    panel.look(finally_=True)
    text = running_html(panel, "running")
    Elements(text)
    assert "12/12 measurements" in text
    (corners,) = re.findall(r'd="M([\d. HV]+)" fill="none" stroke="var\(--dse-front', text)
    across = [float(x) for x in re.findall(r"(?:^|H)([\d.]+)", corners)]
    assert across == sorted(across)
    assert len(across) == len(study.front) > 3


def test_three_objectives_say_which_two_are_drawn():
    text = ODD["three"]().front._repr_html_()
    assert "the first two of 3 objectives" in text
    assert text.count("<th ") >= 4


def test_a_space_tells_domains_units_conditions_and_rules():
    space = Space(
        {
            "format": [HOSTILE, "int8"],
            "clock": {"real": ["200 MHz", "1.6 GHz"], "scale": "log"},
            "bits": {"integer": [1, 8], "when": "format == 'int8'"},
        },
        ["bits <= 4"],
    )
    text = space._repr_html_()
    Elements(text)
    cells = ["200 MHz .. 1.6 GHz, log scale", "Hz", "format == &#x27;int8&#x27;", "1 .. 8"]
    assert [cell for cell in cells if f"<td>{cell}</td>" not in text] == []
    assert "<code>bits &lt;= 4</code>" in text


def test_a_space_with_a_mistake_shows_the_mistake():
    assert "there is no &#x27;b&#x27;" in Space({"a": [1, 2]}, ["b < 3"])._repr_html_()


def test_an_evaluator_tells_what_it_reads_and_tells():
    def kernel(tile, narrow=False):
        return {}

    text = evaluator(TIME, version="7")(kernel)._repr_html_()
    assert "tile and narrow (may be absent)" in text
    assert "<td>time</td><td>us</td><td>minimize</td>" in text
    assert "<dd>7</dd>" in text


def test_a_unit_that_does_not_exist_is_told():
    assert (
        "there is no unit &#x27;parrots&#x27;"
        in evaluator(Metric("t", "parrots"))(cost)._repr_html_()
    )


def test_drawings_of_the_same_study_do_not_share_names():
    text = ODD["two"]()._repr_html_()
    assert " id=" not in text
    assert "url(#" not in text


def many(size):
    """A front among so many trials, none of which was ever a trial."""
    study = study_of(cost, TIME, MEMORY, run=0)
    rng = np.random.default_rng(1)
    few = Trials.of(study_of(cost, TIME, MEMORY, run=2).trials)
    drawn = few.take(np.zeros(size, dtype=int))
    for values in drawn.metrics.values():
        values[:] = rng.lognormal(size=size)
    drawn.number[:] = np.arange(size)
    drawn.ended[:] = np.arange(size)
    return study.problem, drawn


def test_ten_thousand_trials_are_a_small_drawing():
    problem, trials = many(10_000)
    assert len(trials) == 10_000
    assert trials.counts == {State.DONE: 10_000}
    front = ParetoSet.of(problem, trials)
    assert len(scatter(points_of(front, trials), "ten thousand")) < 150_000


def test_a_million_trials_make_no_larger_a_drawing():
    problem, trials = many(1_000_000)
    front = ParetoSet.of(problem, trials)
    assert len(scatter(points_of(front, trials), "a million")) < 250_000


@pytest.mark.parametrize(
    ("low", "high", "log", "wanted"),
    [
        (0.0, 10.0, False, [0, 2, 4, 6, 8, 10]),
        (-0.3, 0.3, False, [-0.2, 0.0, 0.2]),
        (1.0, 1000.0, True, [1, 10, 100, 1000]),
        (1e-12, 1e12, True, [1e-12, 1e-7, 1e-2, 1e3, 1e8]),
        (3.0, 4.0, True, [3.0, 3.2, 3.4, 3.6, 3.8, 4.0]),
        (5.0, 5.0, False, [5]),
        (-1e308, 1e308, False, []),
    ],
)
def test_ticks_are_round_and_few(low, high, log, wanted):
    assert ticks(low, high, log=log) == pytest.approx(wanted)
