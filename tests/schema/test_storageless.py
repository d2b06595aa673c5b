"""A stored study names no storage: the texts of its files are kept without."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from dse.cli.app import app
from dse.schema.history.without_storages import storageless, without_storages
from dse.study.storage_access import opened_storage
from dse.study.study_engine import StudyEngine

URL = "postgresql+psycopg://me:hush-Qx7@host/dse"
SPACE = "space: s\nparameters: {n: {ordinal: [1, 2, 4]}}\n"
STUDY = """\
study: s
space: space.yaml
evaluators: {m: {use: expression, metrics: {time: {formula: 1 s / n, unit: s}}}}
objectives: [{minimize: m.time}]
"""


@pytest.mark.parametrize(
    "told",
    [
        f"storage: {URL}\n",
        f"storage: '{URL}'   # where\n",
        f'"stor\\x61ge": "{URL}"\n',
        f"storage: >-\n  {URL}\n",
        f"storage: |-\n  {URL}\n\n",
        f"storage:\n  {URL}\n",
        "storage:\n",
        f"# storage: {URL}\n",
        f"transfer_from: [old, {{study: far, storage: '{URL}'}}]\n",
        f"prior:\n  - study: far\n    storage: {URL}\n  - old\n",
        f"ü: ä  # ü {URL} and more\nstorage: {URL}\ntransfer_from: [{{storage: {URL}, study: a}}]\n",
    ],
)
def test_the_value_of_a_storage_is_null_and_all_else_stays_on_its_line(told):
    text = f"{told}last: {{of: all}}  # {URL}\n"
    kept = without_storages(text)
    assert "hush" not in kept
    said = yaml.safe_load(text)
    if "storage" in said:
        said["storage"] = None
    for one in [*said.get("prior", []), *said.get("transfer_from", [])]:
        if isinstance(one, dict):
            one["storage"] = None
    assert yaml.safe_load(kept) == said
    lines = [one.startswith("last:") for one in text.split("\n")]
    assert [one.startswith("last:") for one in kept.split("\n")] == lines


def test_in_a_flow_mapping_too():
    text = f"{{study: s, storage: '{URL}', seed: 3}}"
    assert yaml.safe_load(without_storages(text)) == {"study": "s", "storage": None, "seed": 3}


@pytest.mark.parametrize(
    "text",
    [
        STUDY,
        "evaluators: {m: {use: x, storage: disk, url: 'http://a:b@c'}}\n",  # an option of a plug-in
        "storage: [\n",
        "a: *storage\n",
        "",
        "- storage: x\n",
    ],
)
def test_a_text_that_names_none_stays_as_it_is(text):
    assert without_storages(text) == text


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(f"{STUDY}storage: sqlite:///own.db\n# or {URL}\n")
    return tmp_path


def test_a_study_is_stored_without_its_storage_and_gone_on_with(folder):
    assert CliRunner().invoke(app, ["run", "study.yaml", "--quiet"]).exit_code == 0
    spec = opened_storage("sqlite:///own.db").spec("s")
    assert "own.db" not in json.dumps(spec)
    assert "hush" not in json.dumps(spec)
    assert StudyEngine.load("s", "sqlite:///own.db").plan.storage is None
    assert CliRunner().invoke(app, ["run", "study.yaml", "--quiet"]).exit_code == 0


def test_what_an_older_version_stored_is_read_and_exported_without(folder):
    CliRunner().invoke(app, ["run", "study.yaml", "--quiet"])
    new = opened_storage("sqlite:///own.db").spec("s")
    path = new["path"]
    old = {**new, "texts": {**new["texts"], path: f"{STUDY}storage: {URL}\n"}}
    storage = opened_storage("sqlite:///old.db", begins=True)
    storage.create("s", old)
    study = StudyEngine.load("s", storage)
    assert study.plan.storage is None
    study.check_unchanged()
    for file in ("old.jsonl", "old.parquet"):
        words = ["studies", "export", "s", "--storage", "sqlite:///old.db", "-o", file]
        assert CliRunner().invoke(app, words).exit_code == 0
        assert b"hush" not in (folder / file).read_bytes()
    assert storageless(old)["texts"][path].startswith(STUDY)
