"""Old names of commands and options: they do what they did, with a line on stderr."""

import pytest

from dse.cli.renamed_words import COMMANDS, OPTIONS, rename_words
from tests.compatibility.surface import surface


@pytest.mark.parametrize(
    ("words", "renamed", "warned"),
    [
        (
            ["compare", "a", "--over", "cost", "--at=5"],
            "compare a --budget-axis cost --budget=5",
            2,
        ),
        (["run", "s.yaml", "--gain", "1 %"], "run s.yaml --min-improvement 1 %", 1),
        (["space", "why", "s.yaml"], "space explain s.yaml", 1),
        (["compare", "--", "--over"], "compare -- --over", 0),
        (["front", "why", "--over"], "front why --over", 0),
        (["front"], "front", 0),
        ([], "", 0),
    ],
)
def test_old_words_become_present_ones(words, renamed, warned, capsys):
    assert " ".join(rename_words(words)) == renamed
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == warned
    assert all(line.startswith("warning: '") for line in lines)


def test_each_present_word_exists():
    commands = surface()["commands"]
    for (command, _), option in OPTIONS.items():
        assert option in commands[f"dse {command}"]
    for (group, _), command in COMMANDS.items():
        assert f"dse {group} {command}" in commands
