"""A study whose every text is an attack on terminals: shown as marks by each command and page."""

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

import dse
from dse.cli.app import app
from dse.core.metric import Failure
from dse.core.trial import Driver, Event, Outcome, Report, State
from dse.report.text.console import SafeConsole
from dse.schema.study.budget import Budget
from dse.services.progress.panel import StudyPanel
from dse.services.progress.screen import LineDisplay, PanelDisplay
from dse.storage.sql.database_storage import SqlStorage
from dse.study.study_engine import StudyEngine
from dse.system.terminal_text import is_visible, visible, visible_html, visible_json

ATTACKS = {
    "clear and title": "\x1b[2J\x1b]0;gone\x07",
    "colour": "\x1b[31mred\x1b[0m",
    "link": "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
    "C1 escape": "\x9b2J\x9d0;gone\x9c",
    "line over line": "failed\rpassed",
    "backspaces": "no\x08\x08ok",
    "form feed": "a\x0c\x0bb",
    "right to left": "\u202egnp.exe\u2066",
    "marks": "\u200e\u200f\u061c",
    "zero width": "a\u200bb\u200cc\u200dd\ufeffe\u2060f",
    "line separators": "a\u2028b\u2029c",
    "tags": "a\U000e0041b",
    "delete": "a\x7fb",
    "markup": "[bold]<script>alert(1)</script>[/bold]",
}
TEXT = " ".join(ATTACKS.values())
RAW = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
NAME = f"hostile {ATTACKS['clear and title']}{ATTACKS['right to left']}"
STUDY = """
study: s
question: QUESTION
space: space.yaml
evaluators: {m: {use: expression, metrics: {time: {formula: 100 s / n, unit: s}, area: {formula: n + 3}}}}
objectives: [{minimize: m.time, label: LABEL}, {minimize: m.area}]
constraints: [m.area <= 30]
unread: [word]
optimizer: {use: random}
budget: {trials: 8}
finds: [{claim: QUESTION, ours: least(m.time), accept: ours > 0, note: QUESTION}]
"""
SPACE = "{space: SPACE, description: QUESTION, parameters: {n: {ordinal: [1, 2, 4, 8, 16]}, word: {choice: WORDS}}}"


def test_each_character_that_a_terminal_obeys_or_hides_has_a_mark():
    assert visible(TEXT).isprintable()
    assert not RAW.search(visible(TEXT))
    assert visible("\x1b[2J\u202e") == r"\x1b[2J<U+202E>"
    assert visible("\ud800") == r"\ud800"
    assert visible(visible(TEXT)) == visible(TEXT)
    plain = "Größe, 大小, ❤️, a\tb\n-"
    assert visible(plain) == plain
    assert is_visible("Größe")
    assert not any(map(is_visible, ["a\nb", "a\tb", "a\u3164", "\x1b"]))


def test_html_and_json_are_marked_without_a_change_of_what_scripts_read():
    page = visible_html('<p title="a\u202eb">a\u202eb\x1b</p>')
    assert page == '<p title="a&#x202E;b">a&lt;U+202E&gt;b\\x1b</p>'
    told = {"a\u202e": ["\x1b\r\b", "\\u202e", "\U0001f600", "\\\u200b", "\x9b", 'q"']}
    for ascii_ in (True, False):
        marked = json.loads(visible_json(json.dumps(told, ensure_ascii=ascii_)))
        assert marked == {
            "a<U+202E>": ["\\x1b\\r\\x08", "\\u202e", "\U0001f600", "\\<U+200B>", "\\x9b", 'q"']
        }


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_console_shows_marks_wherever_a_text_stands(attack):
    file = io.StringIO()
    console = SafeConsole(file=file, force_terminal=True, width=200)
    text = ATTACKS[attack]
    table = Table(title=text)
    table.add_column(text.replace("[", "\\["))
    table.add_row(Text(text))
    for one in (text, Text(text, style="bold"), Text.assemble((text, "red"), "b"), table):
        console.print(one, markup=False)
    seen = re.sub(r"\x1b\[[\d;]*m", "", file.getvalue())  # what the console itself draws
    assert not RAW.search(seen)
    if attack == "colour":
        assert "\\x1b[31mred" in file.getvalue()
        assert seen.count("\\x1b") >= 2 * 5


def test_a_table_of_marked_texts_keeps_its_columns():
    def drawn(kind, cell):
        file = io.StringIO()
        table = Table("name", "value")
        table.add_row(cell, "1")
        kind(file=file, width=100).print(table, markup=False)
        return file.getvalue()

    assert drawn(SafeConsole, "a\x1b\u202eb") == drawn(Console, r"a\x1b<U+202E>b")


def quoted(text):
    """A text as YAML writes it in double quotes."""
    return '"' + "".join(c if c.isalnum() else f"\\U{ord(c):08x}" for c in text) + '"'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study with an attack in every place, named by one; and one of the same name that is plain."""
    made = tmp_path_factory.mktemp("hostile")
    words = f"[{', '.join(map(quoted, ATTACKS.values()))}]"
    question, label = quoted(TEXT), quoted(TEXT[:30])
    (made / "study.yaml").write_text(STUDY.replace("QUESTION", question).replace("LABEL", label))
    (made / "space.yaml").write_text(
        SPACE.replace("WORDS", words).replace("QUESTION", question).replace("SPACE", question)
    )
    storage = SqlStorage(f"sqlite:///{made}/dse.db")
    StudyEngine.open(made / "study.yaml", storage=storage).run(budget=Budget(trials=8))
    storage.create(NAME, storage.spec("s"))
    for name in ("s", NAME):
        trials = storage.trials(name)
        first = len(trials)
        storage.add(name, [one.design for one in storage.trials("s")[:3]])
        failure = Failure(kind="raised", reason=TEXT)
        told = {
            first: Outcome(state=State.FAILED, failure=failure, metrics={TEXT: 1.0}),
            first + 1: Outcome(state=State.INFEASIBLE, failure=failure),
        }
        storage.retry(name, {first + 2: Outcome(state=State.FAILED, failure=failure)})
        storage.finish(name, told, [Event(kind=TEXT[:40], text=TEXT)])
        storage.report(name, [Report(number=first, step=1, metrics={TEXT: 1.0})])
        storage.enter(name, Driver(host=TEXT, pid=7, provenance={TEXT: TEXT}))
    storage.close()
    return made


def printed(folder, monkeypatch, words, columns="80"):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.delenv("DSE_STORAGE", raising=False)
    result = CliRunner().invoke(app, [one.replace("NAME", NAME) for one in words])
    return f"{result.output}{result.exception or ''}", result


COMMANDS = [
    ["check", "study.yaml"],
    ["status"],
    ["status", "NAME"],
    ["status", "NAME", "--format", "json"],
    ["front", "s"],
    ["front", "NAME"],
    ["front", "s", "--format", "json"],
    ["trials", "s"],
    ["trials", "NAME"],
    ["trials", "s", "--format", "json"],
    ["studies", "list"],
    ["studies", "list", "--format", "json"],
    ["studies", "delete", "NAME"],
    ["studies", "trust", "NAME"],
    ["studies", "export", "NAME", "--salvage", "-o", "sound.jsonl"],
    ["doctor"],
    ["studies", "export", "NAME", "-o", "out.jsonl"],
    ["studies", "import", "out.jsonl"],
    ["compare", "s", "NAME"],
    ["compare", "s", "NAME", "--format", "json"],
    ["effects", "s"],
    ["verify", "NAME"],
    ["verify", "s"],
    ["resume", "NAME", "--trials", "12"],
    ["run", "study.yaml"],
    ["run", "study.yaml", "--name", "NAME"],
    ["front", "no NAME"],
    ["evaluate", "study.yaml"],
    ["check", "--reproduce", "study.yaml"],
    ["space", "describe", "space.yaml"],
    ["space", "sample", "space.yaml", "-n", "5"],
    ["space", "enumerate", "space.yaml"],
    ["space", "explain", "space.yaml", "--set", "word=x\x1b[2J"],
    ["space", "diff", "space.yaml", "space.yaml"],
    ["report", "s", "NAME", "-o", "report\x1b[2J.html"],
    ["doctor", "--storage", "sqlite:///dse\x1b[2J\u202e.db"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]))
@pytest.mark.parametrize("columns", ["40", "200"])
def test_no_command_prints_what_a_terminal_obeys(folder, monkeypatch, words, columns):
    text, _ = printed(folder, monkeypatch, words, columns)
    assert text.strip()
    found = RAW.search(text)
    assert found is None, repr(text[max(0, found.start() - 200) : found.end() + 50])


def test_a_name_of_a_new_study_holds_no_such_character(folder, monkeypatch):
    for name in (NAME, "a\u3164b", "a\u200db", "\u202ea"):
        text, result = printed(folder, monkeypatch, ["run", "study.yaml", "--name", name])
        assert "is no name" in text
        assert result.exit_code == 1


def test_csv_is_exact_in_a_file_and_marked_on_a_terminal(folder, monkeypatch):
    text, result = printed(folder, monkeypatch, ["trials", "s", "--format", "csv"])
    assert ATTACKS["clear and title"] in result.stdout
    monkeypatch.setattr("dse.cli.options._is_terminal", lambda: True)
    text, _ = printed(folder, monkeypatch, ["trials", "s", "--format", "csv"])
    assert not RAW.search(text)
    assert r"\x1b[2J" in text


def test_a_report_shows_marks_and_runs_nothing(folder, monkeypatch):
    printed(folder, monkeypatch, ["report", "s", "-o", "page.html"])
    page = (folder / "page.html").read_text()
    body = page[page.index("<body") :]
    body = re.sub(r"<script>.*?</script>", "", body, flags=re.DOTALL)  # the libraries
    assert not RAW.search(body)
    assert not re.search(r"\\u(00[01][0-9a-f]|009b|202e|200b)", body)  # in what is drawn
    assert "&lt;U+202E&gt;" in body
    assert "<script>alert" not in body


def test_a_running_study_shows_marks(folder):
    study = StudyEngine.load(NAME, f"sqlite:///{folder}/dse.db")
    file = io.StringIO()
    console = SafeConsole(file=file, force_terminal=True, width=120, height=40)
    panel = StudyPanel(study, Budget(trials=40))
    panel.look()
    console.print(panel)
    for screen in (LineDisplay(console), PanelDisplay(console)):
        screen.say(TEXT)
    seen = re.sub(r"\x1b\[[\d;]*m", "", file.getvalue())
    assert "hostile" in seen
    assert not RAW.search(seen)


def test_a_shell_is_offered_no_such_name(folder, monkeypatch):
    from dse.cli import completion as completing

    monkeypatch.chdir(folder)
    assert completing._matching(lambda: ["s", NAME], "") == ["s"]


def test_texts_reach_a_terminal_by_the_walls_alone():
    """Whoever adds an output is told here to take ``show``, ``say`` or a SafeConsole."""
    room = Path(dse.__file__).parent
    walls = {"options.py", "app.py", "completion.py", "console.py"}
    found = [
        f"{path.relative_to(room)}:{number}"
        for path in sorted(room.rglob("*.py"))
        if path.name not in walls and "testing" not in path.parts
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if re.search(r"\btyper\.echo\(|(?<!Safe)(?<!Plain)\bConsole\(", line)
        and not line.startswith("class ")
    ]
    assert found == []
