"""The page about workloads is true: its counts, its keys, its program."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from dse_evaluators.workloads.catalogue import FAMILIES, table_of
from dse_evaluators.workloads.workload_text import WordKey

PAGE = (Path(__file__).parents[3] / "docs" / "workloads.md").read_text()
COUNTED = re.findall(r"^\| `(\S+)` \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|", PAGE, re.MULTILINE)
(PROGRAM,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
KEYS = {
    name: dict(re.findall(r"`(\w+)=([^`]*)`", line.split(" | ")[-1].replace("\\|", "/")))
    for line in PAGE.splitlines()
    for name in re.findall(r"^\| `([\w.-]+)`", line)
    if line.count(" | ") == 2
}


@pytest.mark.parametrize(("text", "layers", "macs", "parameters"), COUNTED)
def test_a_line_of_the_page_is_what_the_table_counts(text, layers, macs, parameters):
    table = table_of(text)
    found = f"{len(table.layers):,}", f"{table.macs:,}", f"{table.parameters:,}"
    assert found == (layers, macs, parameters)


def test_every_name_has_a_line():
    assert {text for text, *_ in COUNTED} == set(FAMILIES)


@pytest.mark.parametrize(
    "name",
    [
        "bert-base",
        "sd-unet",
        "modelscope-unet",
        "dit-xl2",
        "paradnn-fc",
        "paradnn-cnn",
        "paradnn-rnn",
    ],
)
def test_the_page_has_the_keys_and_defaults_of_a_family(name):
    defaults = {
        key: "/".join(kind.words) if isinstance(kind, WordKey) else str(kind.default)
        for key, kind in FAMILIES[name].keys.items()
    }
    assert KEYS[name] == defaults


def test_the_program_of_the_page_runs(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    assert "layers" in runpy.run_path(str(path))
