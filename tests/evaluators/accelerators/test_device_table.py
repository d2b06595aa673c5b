"""The table of devices: each figure has a source, and two that differ have two sources."""

from __future__ import annotations

import csv
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from dse_evaluators.accelerators.devices import devices
from dse_evaluators.accelerators.devices.devices import DEVICES, figures_from
from dse_evaluators.clusters.chips import ROWS
from dse_evaluators.clusters.two_streams.machines import MACHINES
from dse_evaluators.kernels.gpus import GPUS

TABLES = Path(devices.__file__).parent
NO_FACTS = {"name", "publication", "source", "note"}


def table(name):
    with (TABLES / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def facts(row):
    return {column: value for column, value in row.items() if column not in NO_FACTS and value}


def sources(row):
    """The source of each fact: that of the part which starts with it, else the first part."""
    first, *parts = row["source"].split(" | ")
    named = [part.partition(": ")[::2] for part in parts]
    own = {fact: source for names, source in named for fact in names.split()}
    return dict.fromkeys(facts(row), first) | own


def same(row):
    return row["name"] + (f" of {row['publication']}" if row["publication"] else "")


SHEETS = table("devices.csv")
PAIRS = [
    pytest.param(one, other, id=f"{same(one)}, {same(other)}")
    for one, other in combinations(SHEETS, 2)
    if one["name"] == other["name"]
]
every_row = pytest.mark.parametrize("row", SHEETS, ids=same)


@every_row
def test_each_fact_has_a_source(row):
    assert all(sources(row).values())


@every_row
def test_a_source_names_facts_of_its_row_only(row):
    assert sources(row).keys() == facts(row).keys()


@every_row
def test_an_unverified_fact_names_its_document(row):
    unverified = [source for source in sources(row).values() if "unverified" in source]
    assert all(source.startswith("unverified (") for source in unverified)


def test_a_device_has_one_row_for_each_publication():
    assert max(Counter(map(same, SHEETS)).values()) == 1


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_two_values_of_a_fact_have_two_sources(one, other):
    ours, theirs = facts(one), facts(other)
    differ = {fact for fact in ours.keys() & theirs.keys() if ours[fact] != theirs[fact]}
    assert not [fact for fact in differ if sources(one)[fact] == sources(other)[fact]]


@pytest.mark.parametrize("name", ["calibrations.csv", "gpu_power.csv"])
def test_a_fit_of_a_device_stands_once(name):
    keys = [
        tuple(row[key] for key in ("device", "format", "framework", "version"))
        for row in table(name)
    ]
    assert len(keys) == len(set(keys))


def test_calibrated_chips_are_devices_of_the_table():
    assert {device for device, _ in ROWS} <= DEVICES.keys()


@pytest.mark.parametrize(
    ("publication", "device", "figure", "used", "sold"),
    [
        ("lym-2019", "v100-sxm2", "compute_units", GPUS["v100"].sms, 80),
        ("hsia-2024", "h100-sxm", "fp16", MACHINES["aws-p5"].flops_per_s[2], 989e12),
        ("hsia-2024", "v100-sxm2", "fp16", MACHINES["aws-p3"].flops_per_s[2], 125e12),
    ],
)
def test_a_reproduction_keeps_the_figures_of_its_paper(publication, device, figure, used, sold):
    assert used == figures_from(publication)[device][figure]
    assert figures_from()[device][figure] == sold
