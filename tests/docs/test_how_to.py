"""What a reader does who follows the tour or a how-to: saves its files, types its commands."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine
from typer.testing import CliRunner

from dse.cli.app import app
from dse.errors import DseError
from dse.registry import names

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "index.md", *sorted((DOCS / "how-to").glob("*.md"))]
CELLS = DOCS / "how-to" / "notebook.md"
"""It is followed in a notebook, by ``tests/api/test_notebook.py``."""
OF_AUTHORS = [p for p in (DOCS / "how-to").glob("own-*.md") if p.stem != "own-model"]
"""They are followed by ``tests/plugins/test_pages_of_authors.py``."""
PACKAGES = {
    "tune-server": "xllamacpp",
    "private-inference": "tenseal",
    "vector-index": "faiss",
    "datastore": "faiss",
}
"""Pages that need an extra."""
BLOCK = re.compile(
    r'^```(\w+)(?: (?:title="([^"]+)"|(\w+)))?\n(.*?)^```$', re.DOTALL | re.MULTILINE
)
AX_CODE = ("python", "")
EXIT = re.compile(r"\s+# exit code (\d+)$")
OFFLINE = "--quiet --no-index --no-deps --no-build-isolation --target installed"


def name_of(path):
    return path.stem


def commands_of(text):
    """The commands of a block, each with what it prints; ``None``: the page does not say."""
    if not text.startswith("$ "):
        return [(line, None) for line in text.splitlines() if line]
    return [
        tuple(part.partition("\n")[::2]) for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    ]


def dse(words):
    """What the command says, and its exit code."""
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, words)
    if isinstance(done.exception, DseError):
        return f"{done.output}error: {done.exception}", 2
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output, done.exit_code


def another(words):
    """The same of a program that is not ours; what is installed lands in the folder."""
    if words[:2] == ["pip", "install"]:
        words = ["-m", "pip", "install", *OFFLINE.split(), *words[2:]]
    else:
        assert words[0] == "python3"
        words = words[1:]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr, done.returncode


def typed(command):
    words = shlex.split(EXIT.sub("", command), comments=True)
    return dse(words[1:]) if words[0] == "dse" else another(words)


def judge(command, shown):
    """Nothing, if the command ends as the page says and prints what it shows."""
    wanted = EXIT.search(command)
    told, code = typed(command)
    assert code == (int(wanted.group(1)) if wanted else 0), f"{command}\n{told}"
    if shown is not None:
        told = "".join(f"{line.rstrip()}\n" for line in told.splitlines())
        parts = [re.escape(part) for part in re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE)]
        assert re.fullmatch("(.*\n)*".join(parts), told), f"{command}\n{told}"


def follow(page):
    """Saves each file and types each command of a page, in their order."""
    typed_in = 0
    for kind, title, _, text in BLOCK.findall(page.read_text()):
        if title:
            Path(title).parent.mkdir(exist_ok=True)
            Path(title).write_text(text)
        elif kind == "console":
            for command, shown in commands_of(text):
                judge(command, shown)
                typed_in += 1
    return typed_in


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of one's own to work in, from where what is installed there is found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DSE_STORAGE", raising=False)
    monkeypatch.syspath_prepend(tmp_path / "installed")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    names.cache_clear()  # a process looks for plug-ins once, and other tests have
    yield tmp_path
    names.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        page
        for page in PAGES
        if "```console" in page.read_text() and page not in (CELLS, *OF_AUTHORS)
    ],
    ids=name_of,
)
def test_a_page_can_be_followed_as_it_is_written(page, folder):
    if page.stem in PACKAGES:
        pytest.importorskip(PACKAGES[page.stem])
    assert follow(page) > 1


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_no_block_that_nothing_judges(page):
    kinds = {(kind, bool(title)) for kind, title, _, _ in BLOCK.findall(page.read_text())}
    fences = len(re.findall(r"^```", page.read_text(), re.MULTILINE))
    assert fences == 2 * len(BLOCK.findall(page.read_text()))
    assert kinds <= {(k, True) for k in ("yaml", "python", "csv", "toml", "json", "c")} | {
        ("console", False),
        ("sh", False),
        ("python", False),
    }


AX_TRIALS = """
for index, given in client.get_next_trials(max_trials=2).items():
    client.complete_trial(index, raw_data={"loss": given["rate"], "latency": given["layers"]})
"""


@pytest.mark.proof
@pytest.mark.filterwarnings("ignore")
def test_what_is_said_in_the_words_of_ax_runs_and_its_table_has_the_columns_of_the_page(folder):
    text = (DOCS / "how-to" / "from-ax.md").read_text()
    first, last = [code for kind, title, _, code in BLOCK.findall(text) if (kind, title) == AX_CODE]
    exec(first + AX_TRIALS + last, {})
    shown = next(code for _, title, _, code in BLOCK.findall(text) if title == "trials.csv")
    told = Path("trials.csv").read_text()
    assert {*shown.splitlines()[0].split(",")} <= {*told.splitlines()[0].split(",")}


IN_TURN = """
import shlex, sys
from dse.cli.app import app
for line in sys.argv[1:]:
    app(shlex.split(line)[1:], standalone_mode=False)
"""
"""All in one process, and not in this one: what a command leaves open ends with it."""


@pytest.fixture
def schema():
    """The URL of a PostgreSQL schema without studies."""
    name = f"dse_docs_{uuid4().hex}"
    server = create_engine(os.environ["DSE_TEST_POSTGRES"], isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
        address = server.url.update_query_dict({"options": f"-csearch_path={name}"})
        yield address.render_as_string(hide_password=False)
        connection.exec_driver_sql(f"DROP SCHEMA {name} CASCADE")
    server.dispose()


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("DSE_TEST_POSTGRES"),
    reason="PostgreSQL: DSE_TEST_POSTGRES names no database",
)
def test_the_commands_for_postgresql_work_as_written(folder, schema, monkeypatch):
    monkeypatch.setenv("DSE_STORAGE", schema)
    blocks = BLOCK.findall((DOCS / "how-to" / "postgresql.md").read_text())
    files = {title: text for _, title, _, text in blocks if title}
    lines = "".join(text for _, _, mark, text in blocks if mark == "postgresql").splitlines()
    for title, text in files.items():
        Path(title).write_text(text)
    words = [sys.executable, "-c", IN_TURN, *(line for line in lines if line.startswith("dse "))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "the exact front" in done.stdout
    assert "proved: 1 asks, 4 trials" in done.stdout
