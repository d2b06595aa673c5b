"""A real notebook: cells run by a kernel, and what they show."""

import os
import re
import signal
import sys
import time
from pathlib import Path
from threading import Thread

import nbformat
import pytest
from nbclient import NotebookClient

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "notebook.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

BEGIN = """
from dse import Metric, Space, Study, evaluator

@evaluator(Metric("time", "us", goal="minimize"), Metric("memory", "KiB", goal="minimize"))
def kernel(tile: int, stages: int):
    return {"time": 1000 / tile + 40 / stages, "memory": tile * tile * stages / 512}

space = Space({"tile": [16, 32, 64, 128], "stages": (1, 6)}, ["tile * stages <= 512"])
study = Study("tiles", space, [kernel])
"""
RUN = "study.run(measurements={})"
SLOW = """
import time
from dse import Metric, Study, evaluator

@evaluator(Metric("time", goal="minimize"))
def slow(tile: int):
    with open("begun", "a") as file:
        file.write(".")
    time.sleep(0.1)
    return {"time": tile}

study = Study("slow", {"tile": (1, 500)}, [slow], optimizer="random")
"""

pytestmark = pytest.mark.slow


class Notebook:
    """A kernel, and the cells that it has run."""

    def __init__(self) -> None:
        self.client = NotebookClient(
            nbformat.v4.new_notebook(),
            kernel_name="python3",  # this very Python
            allow_errors=True,
            timeout=600,
        )

    def run(self, code: str):
        """What a new cell with this code shows."""
        cell = nbformat.v4.new_code_cell(code)
        self.client.nb.cells.append(cell)
        self.client.execute_cell(cell, len(self.client.nb.cells) - 1)
        return cell.outputs

    def interrupt_after(self, begun: Path) -> None:
        """What the square button does, as soon as the fourth measurement has begun."""

        def interrupt() -> None:
            until = time.monotonic() + 300
            while not (begun.exists() and begun.stat().st_size >= 4) and time.monotonic() < until:
                time.sleep(0.05)
            os.killpg(self.client.km.provisioner.pgid, signal.SIGINT)

        Thread(target=interrupt).start()


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """One kernel for all tests, as importing what a study needs takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        patch.delenv("DSE_STORAGE", raising=False)
        made = Notebook()
        with made.client.setup_kernel():
            yield made


@pytest.fixture
def notebook(kernel, tmp_path):
    """A notebook without names in it, in a folder of its own."""
    kernel.run(f"%reset -f\nimport os\nos.chdir({str(tmp_path)!r})\ndel os")
    return kernel


def htmls(outputs):
    return [one.data["text/html"] for one in outputs if "text/html" in one.get("data", {})]


def told(outputs):
    """The text of results and of errors."""
    texts = [one.data.get("text/plain", "") for one in outputs if "data" in one]
    texts += [one.text for one in outputs if one.output_type == "stream"]
    return "\n".join(texts + ["\n".join(one.traceback) for one in outputs if "traceback" in one])


def cells_of(page):
    """The code of a page in its order; its commands as a shell of the notebook types them."""
    for kind, text in BLOCK.findall(page.read_text()):
        if kind == "console":
            lines = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
            dse = f"{sys.executable} -m dse"
            yield "\n".join(f"!{dse}{line[3:]}\nassert _exit_code == 0" for line in lines)
        else:
            yield text


def test_the_page_works_as_it_is_written(notebook):
    shown = [notebook.run(code) for code in cells_of(PAGE)]
    assert [told(one) for one in shown if any(o.output_type == "error" for o in one)] == []
    everything = "\n".join(map(told, shown))
    assert "the front so far: " in everything
    assert "the study 'tiles' exists and asks something else: " in everything


def test_a_study_in_ten_lines_is_shown_while_it_runs_and_when_it_is_done(notebook):
    notebook.run(BEGIN)
    running = notebook.run(RUN.format(12))
    assert [one.output_type for one in running] == ["display_data", "execute_result"]
    (live,) = htmls(running)
    assert "12/12 measurements" in live
    assert "12 measurements are done" in live
    (front,) = htmls(notebook.run("study.front"))
    assert front.count("<circle") == front.count("<title>") + 1 > 3  # the knee has a ring
    assert '<svg role="img" aria-label="tiles: ' in front
    assert "kernel.time [µs], minimize" in front


@pytest.mark.parametrize(
    "what", ["study", "space", "kernel", "study.front", "study.trials[0]", "study.trials"]
)
def test_everything_is_shown_as_a_table(notebook, what):
    notebook.run(BEGIN)
    notebook.run(RUN.format(4))
    (html,) = htmls(notebook.run(what))
    assert html.startswith('<div class="dse-shown ')
    assert "<script" not in html


def test_a_trial_has_the_units_of_its_study(notebook):
    notebook.run(BEGIN)
    notebook.run(RUN.format(4))
    (html,) = htmls(notebook.run("study.trials[0]"))
    assert re.search(r"<td>kernel.time</td><td[^>]*>[\d.]+ µs</td>", html)


def test_a_function_of_a_cell_runs_in_other_processes(notebook):
    notebook.run(BEGIN.replace("return", "import os; return").replace("1000 /", "os.getpid() +"))
    ended = notebook.run('study.run(measurements=6, executor="processes")')
    assert "6 measurements are done" in told(ended)
    pids = "{round(t.metrics['kernel.time'] - t.design['tile'] - 40 / t.design['stages'])"
    shown = notebook.run(
        f"import os; sorted({pids} for t in study.trials}} - {{os.getpid()}}) != []"
    )
    assert "True" in told(shown)


def test_a_cell_that_is_run_again_goes_on_with_its_study(notebook):
    notebook.run(BEGIN + RUN.format(6))
    again = notebook.run(BEGIN + RUN.format(9))
    assert "9 measurements are done" in told(again)
    assert told(notebook.run("len(study.trials)")) == "9"


def test_a_function_with_another_body_is_told_in_one_message(notebook):
    notebook.run(BEGIN + RUN.format(6))
    (error,) = notebook.run(BEGIN.replace("1000 /", "900 /"))
    assert error.ename == "StudyError"
    (message,) = error.traceback
    assert message.startswith("StudyError: the study 'tiles' exists and asks something else: ")
    assert "give this one another name" in message


def test_a_silent_run_shows_nothing_but_its_result(notebook):
    notebook.run(BEGIN)
    (result,) = notebook.run("study.run(measurements=4, progress=False)")
    assert result.data["text/plain"] == "'4 measurements are done'"


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_an_interrupt_keeps_what_was_finished_and_says_how_to_go_on(notebook, executor, tmp_path):
    notebook.run(SLOW)
    notebook.interrupt_after(tmp_path / "begun")
    stopped = notebook.run(f"study.run(measurements=400, executor={executor!r})")
    (live,) = htmls(stopped)
    assert "interrupted; call run() to continue" in live
    assert [one.traceback for one in stopped if one.output_type == "error"] == [
        ["interrupted; call run() to continue"]
    ]
    kept = int(told(notebook.run("len(study.trials.finished)")))
    assert 0 < kept < 400
    ended = notebook.run(f"study.run(measurements={kept + 3})")
    assert f"{kept + 3} measurements are done" in told(ended)


def test_the_loop_of_the_kernel_lives_on(notebook):
    notebook.run(BEGIN)
    notebook.run(RUN.format(4))
    alive = notebook.run("import asyncio\nawait asyncio.sleep(0.01)\n'alive'")
    assert told(alive) == "'alive'"
