"""What Tab offers, asked as shells ask: by bash itself, and by the protocols of zsh and fish."""

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dse.cli.completion import rejoin_words
from dse.study.study_engine import StudyEngine

DSE = Path(sys.executable).with_name("dse")
NAMED = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
"""The shell is said, and not looked for: the tests may run under none."""

SPACE = """
space: s
parameters:
  x: {real: [0, 1]}
"""

STUDY = """
study: first
space: space.yaml
evaluators:
  m: {use: expression, metrics: {a: {formula: 1 s * x, unit: s}}}
objectives:
  - minimize: m.a
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "mine" / "space.yaml").write_text(SPACE)
    (tmp_path / "mine" / "other.yaml").write_text(STUDY)
    (tmp_path / "compose.yaml").write_text("services: {}\n")
    for name, file in (("first", "dse.db"), ("two words", "dse.db"), ("elsewhere", "other.db")):
        StudyEngine.open(tmp_path / "study.yaml", name=name, storage=f"sqlite:///{tmp_path / file}")
    return tmp_path


def asked(folder: Path, **told: str) -> list[str]:
    """What dse answers a shell with; never a word on the error stream."""
    environment = {**os.environ, **told}
    if "DSE_STORAGE" not in told:
        environment.pop("DSE_STORAGE", None)
    done = subprocess.run(
        [DSE], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def bash(folder: Path, *words: str, **more: str) -> list[str]:
    told = {"_DSE_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(("dse", *words))}
    return asked(folder, **told, COMP_CWORD=str(len(words)), **more)


def zsh(folder: Path, line: str) -> str:
    return "\n".join(asked(folder, _DSE_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line))


def fish(folder: Path, line: str) -> list[str]:
    told = {"_DSE_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return asked(folder, **told, _TYPER_COMPLETE_ARGS=line)


@pytest.mark.parametrize("command", ["resume", "front", "status", "trials", "verify", "report"])
def test_studies_are_those_of_the_storage(folder, command) -> None:
    assert bash(folder, command, "fi") == ["first"]


def test_a_blank_in_a_name_is_kept_from_the_shell(folder) -> None:
    assert bash(folder, "front", "t") == ["two\\ words"]


def test_the_storage_is_the_one_that_is_named(folder) -> None:
    here = bash(folder, "front", "--storage", "sqlite", ":", "///other.db", "")
    assert here == ["elsewhere"]
    assert bash(folder, "front", "", DSE_STORAGE="sqlite:///other.db") == ["elsewhere"]


@pytest.mark.parametrize(
    "storage",
    ["sqlite:///none.db", "sqlite:///study.yaml", "nonsense", "postgresql+psycopg://x@[::1]:1/x"],
)
def test_a_storage_that_cannot_be_read_completes_to_nothing(folder, storage) -> None:
    assert bash(folder, "front", "", DSE_STORAGE=storage) == []
    assert not (folder / "none.db").exists()


def test_files_are_those_of_the_right_kind(folder) -> None:
    assert bash(folder, "run", "") == ["mine/other.yaml", "study.yaml"]
    assert bash(folder, "space", "describe", "mi") == ["mine/space.yaml"]
    assert set(bash(folder, "check", "s")) == {"space.yaml", "study.yaml"}


def test_the_library_is_offered_by_its_name(folder) -> None:
    assert "library:studies/quickstart.yaml" in bash(folder, "run", "lib")
    assert bash(folder, "run", "library", ":", "studies/quick") == ["studies/quickstart.yaml"]
    assert bash(folder, "space", "count", "library:spaces/edge_c") == ["spaces/edge_codesign.yaml"]


def test_plugins_are_offered_where_they_are_named(folder) -> None:
    assert bash(folder, "sweep", "study.yaml", "--optimizer", "grey") == ["grey-box"]
    assert bash(folder, "run", "study.yaml", "--executor", "pro") == ["processes"]
    assert bash(folder, "plugins", "show", "accelerators.sys") == ["accelerators.systolic"]


def test_a_command_that_stands_deeper_is_no_mistake_while_it_is_typed(folder) -> None:
    assert bash(folder, "list", "st") == bash(folder, "unheard-of", "st") == ["status", "studies"]


def test_supplies_are_offered_by_name(folder) -> None:
    assert bash(folder, "assets", "where", "ml") == ["mlxtend"]
    assert bash(folder, "environments", "install", "zig") == ["zigzag"]


def test_zsh_is_answered_in_its_own_way(folder) -> None:
    assert '"first"' in zsh(folder, "dse front fi")
    assert r'"library\\:studies/quickstart.yaml"' in zsh(folder, "dse run library:studies/q")
    assert zsh(folder, "dse front nothing-like-it") == "_files"


def test_fish_is_answered_in_its_own_way(folder) -> None:
    assert fish(folder, "dse front fi") == ["first"]
    assert fish(folder, "dse plugins show grey") == ["grey-box\toptimizer"]


@pytest.mark.parametrize(
    ("words", "cursor", "whole", "place"),
    [
        (["dse", "run", "library", ":", "x"], 4, ["dse", "run", "library:x"], 2),
        (["dse", "run", "library", ":"], 3, ["dse", "run", "library:"], 2),
        (["dse", "--set", "tp", "=", "8", ""], 5, ["dse", "--set", "tp=8", ""], 3),
        (["dse", "a", "b"], 3, ["dse", "a", "b"], 3),
        (["dse"], 1, ["dse"], 1),
    ],
)
def test_words_that_bash_broke_are_put_together(words, cursor, whole, place) -> None:
    assert rejoin_words(words, cursor) == (whole, place)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_for_every_shell(tmp_path, shell) -> None:
    home = {**os.environ, **NAMED, "HOME": str(tmp_path)}
    done = subprocess.run(
        [DSE, "--install-completion", shell], env=home, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"{shell} completion")
    written = list(tmp_path.rglob("*dse*"))
    assert any("_DSE_COMPLETE" in path.read_text() for path in written)


@pytest.mark.slow
def test_tab_completes_in_a_real_bash(folder) -> None:
    script = subprocess.run(
        [DSE, "--show-completion", "bash"],
        env={**os.environ, **NAMED},
        capture_output=True,
        text=True,
        check=True,
    )
    (folder / "complete.bash").write_text(script.stdout)
    child, screen = pty.fork()
    if child == 0:
        os.chdir(folder)
        path = f"{DSE.parent}:{os.environ['PATH']}"
        begun = {"PATH": path, "PS1": "$ ", "TERM": "dumb", "HOME": str(folder)}
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], begun)
    os.write(screen, b"source complete.bash\n")
    assert typed(screen, "dse resu", until="dse resume ")
    assert typed(screen, "dse front fi", until="dse front first ")
    begun = "dse run library:studies/quick"
    assert typed(screen, begun, until="dse run library:studies/quickstart.yaml ")
    os.write(screen, b"exit\n")
    os.waitpid(child, 0)
    os.close(screen)


def typed(screen: int, text: str, *, until: str) -> bool:
    """Type the text and Tab; whether the line becomes what is awaited. Then clear the line."""
    os.write(screen, text.encode() + b"\t")
    told, ends = "", time.monotonic() + 300
    while until not in told and time.monotonic() < ends:
        if select.select([screen], [], [], 0.2)[0]:
            told += os.read(screen, 1 << 16).decode()
    os.write(screen, b"\x15")
    return until in told
