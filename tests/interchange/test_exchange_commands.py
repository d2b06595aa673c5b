"""``dse space export``, ``import`` and ``diff`` as a user meets them."""

import json

import pytest
import typer
from typer.testing import CliRunner

from dse.cli.space import convert as exchange
from dse.core.inspection.fingerprint import fingerprint
from dse.errors import DseError, SpecError, StorageError
from dse.schema.space.space_loader import space_of
from dse.schema.yaml.files import Files

SPACE = """
space: toy
description: Two numbers.
parameters:
  x: {ordinal: [1, 2, 4, 8]}
  buffer: {ordinal: [64 KiB, 128 KiB, 256 KiB]}
  mode: {choice: [a, b], when: x > 2}
  share: {real: [0, 1]}
constraints:
  - x * buffer <= 1 MiB
"""
MIXED = SPACE + "  - share * x <= 1\n"

app = typer.Typer()
app.command("export")(exchange.export)
app.command("import")(exchange.import_)
app.command("diff")(exchange.diff)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "mixed.yaml").write_text(MIXED)
    (tmp_path / "other.yaml").write_text(SPACE.replace("[64 KiB, 128", "[32 KiB, 128"))
    return tmp_path


def run(*words: str):
    result = CliRunner().invoke(app, words)
    if isinstance(result.exception, DseError):
        raise result.exception
    return result


def space_in(path):
    return space_of(path, Files())


def test_a_flat_file_is_the_same_space(folder):
    result = run("export", "space.yaml", "--to", "yaml", "-o", "flat.yaml")
    assert "wrote flat.yaml" in result.stderr
    assert fingerprint(space_in(folder / "flat.yaml")) == fingerprint(
        space_in(folder / "space.yaml")
    )
    assert (folder / "flat.yaml").read_text().startswith("space: toy\ndescription: Two numbers.\n")


def test_an_export_without_a_file_is_printed(folder):
    assert run("export", "space.yaml", "--to", "yaml").stdout.startswith("space: toy\n")


def test_a_space_goes_to_configspace_and_back(folder):
    pytest.importorskip("ConfigSpace")
    run("export", "space.yaml", "--to", "configspace", "-o", "space.json")
    result = run("import", "space.json", "-o", "back.yaml")
    assert "note: defaults are not part of a space" in result.stderr
    back, space = space_in(folder / "back.yaml"), space_in(folder / "space.yaml")
    assert back.parameters == space.parameters
    assert run("diff", "space.yaml", "back.yaml").exit_code == 1


def test_a_space_goes_to_optuna_without_its_rules_and_back(folder):
    result = run("export", "space.yaml", "--to", "optuna", "--drop-rules", "-o", "space.json")
    assert "note: left out the rule 'x * buffer <= 1 MiB' (space.yaml:10)" in result.stderr
    assert "note: left out that mode exists only when 'x > 2'" in result.stderr
    run("import", "space.json", "--from", "optuna", "-o", "back.yaml")
    assert (
        space_in(folder / "back.yaml").by_name.keys()
        == space_in(folder / "space.yaml").by_name.keys()
    )


def test_what_cannot_be_said_is_refused_with_its_place_and_the_way_out(folder):
    with pytest.raises(SpecError) as caught:
        run("export", "mixed.yaml", "--to", "configspace")
    assert caught.value.where == "mixed.yaml:11"
    assert "--drop-rules" in caught.value.hint


def test_the_same_space_is_said_to_be_the_same(folder):
    run("export", "space.yaml", "--to", "yaml", "-o", "flat.yaml")
    result = run("diff", "space.yaml", "flat.yaml")
    assert (result.exit_code, result.stdout) == (0, "the same space\n")


def test_what_changed_is_told_in_sentences(folder):
    result = run("diff", "space.yaml", "other.yaml")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "buffer is wider: it may also be 32 KiB",
        "buffer is narrower: it can no longer be 64 KiB",
    ]


def test_what_changed_is_told_to_machines_too(folder):
    value = json.loads(run("diff", "space.yaml", "mixed.yaml", "--format", "json").stdout)
    assert value["same"] is False
    assert value["differences"] == ["the rule 'share * x <= 1' is new"]
    assert value["fingerprints"]["old"] == fingerprint(space_in(folder / "space.yaml"))


def test_a_file_that_is_not_there_is_told(folder):
    with pytest.raises(SpecError, match=r"there is no file nothing\.json"):
        run("import", "nothing.json")


def test_a_file_of_another_kind_is_told_with_its_line(folder):
    (folder / "broken.json").write_text('{"hyperparameters": [\n{"name": "x"}]}')
    with pytest.raises(SpecError) as caught:
        run("import", "broken.json")
    assert caught.value.where == "broken.json:2"


def test_an_output_that_is_a_folder_is_told(folder):
    with pytest.raises(StorageError, match="is a folder"):
        run("export", "space.yaml", "--to", "yaml", "-o", str(folder))
