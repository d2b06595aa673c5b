"""Space files: what they mean, and what each mistake is answered with."""

from pathlib import Path

import pytest

from dse.errors import SpecError, SpecErrors
from dse.schema.space.space_loader import space_of
from dse.schema.yaml.files import Files


def space_from(folder: Path, text: str, **others: str):
    for name, content in others.items():
        (folder / f"{name}.yaml").write_text(content)
    path = folder / "main.yaml"
    path.write_text(text)
    return space_of(path, Files())


def mistakes_in(folder: Path, text: str, **others: str) -> str:
    with pytest.raises((SpecError, SpecErrors)) as caught:
        space_from(folder, text, **others)
    return str(caught.value)


def test_domains_are_in_coherent_units(tmp_path):
    space = space_from(
        tmp_path,
        """
space: s
parameters:
  clock:  {real: [200 MHz, 1.6 GHz], scale: log}
  buffer: {ordinal: pow2(64 KiB .. 256 KiB)}
  width:  {ordinal: 'multiples(64, 64 .. 256)'}
  rate:   {ordinal: 'range(0.1 .. 0.3, 0.1)'}
  layers: {integer: [2, 8], step: 3}
  format: {choice: [int8, no, 1.5]}
  fused:  {boolean: true}
  gpus:   {ordinal: [8, 12]}
  tp:     {ordinal: divisors(gpus)}
""",
    )
    assert space.by_name["clock"].low == 2e8
    assert space.by_name["clock"].unit == "Hz"
    assert space.by_name["buffer"].values == (65536, 131072, 262144)
    assert space.by_name["width"].values == (64, 128, 192, 256)
    assert space.by_name["rate"].values == (0.1, 0.2, 0.3)
    assert space.by_name["layers"].values == (2, 5, 8)
    assert space.by_name["format"].values == ("int8", "no", 1.5)
    assert space.by_name["fused"].values == (False, True)
    assert space.by_name["tp"].values == (1, 2, 3, 4, 6, 8, 12)


def test_a_generated_list_of_divisors_is_a_rule_too(tmp_path):
    text = "space: s\nparameters:\n  gpus: {ordinal: [8, 12]}\n  tp: {ordinal: divisors(gpus)}\n"
    space = space_from(tmp_path, text)
    assert space.count() == 4 + 6


def test_a_fragment_arrives_under_its_name_as_often_as_it_is_included(tmp_path):
    space = space_from(
        tmp_path,
        "space: s\ninclude: {a: part.yaml, b: part.yaml}\nconstraints: [a.x <= b.x]\n",
        part="space: p\nparameters:\n  x: {ordinal: [1, 2]}\n  y: {ordinal: [3, 4], when: x == 1}\n",
    )
    assert [p.name for p in space.parameters] == ["a.x", "a.y", "b.x", "b.y"]
    assert space.conditions["b.y"].names == {"b.x"}
    assert space.count() == 2 * 2 + 2 * 1 + 1 * 1


BAD = {
    "misspelt key": ("space: s\nparametres: {}\n", ["main.yaml:2", "'parametres'", "parameters"]),
    "misspelt key inside": (
        "space: s\nparameters:\n  x: {ordinal: [1], wen: y}\n",
        ["main.yaml:3", "'wen'", "did you mean 'when'"],
    ),
    "two domains": (
        "space: s\nparameters:\n  x: {ordinal: [1], choice: [2]}\n",
        ["main.yaml:3", "ordinal and choice"],
    ),
    "no domain": ("space: s\nparameters:\n  x: {unit: s}\n", ["main.yaml:3", "this has none"]),
    "wrong type": (
        "space: s\nparameters:\n  x: {integer: 3}\n",
        ["main.yaml:3", "integer: expected a list"],
    ),
    "backwards": (
        "space: s\nparameters:\n  x: {real: [2, 1]}\n",
        ["main.yaml:3", "backwards"],
    ),
    "log of zero": (
        "space: s\nparameters:\n  x: {real: [0, 1], scale: log}\n",
        ["main.yaml:3", "above zero"],
    ),
    "empty domain": (
        "space: s\nparameters:\n  x: {ordinal: []}\n",
        ["main.yaml:3", "the domain is empty"],
    ),
    "mixed units": (
        "space: s\nparameters:\n  x: {ordinal: [64 KiB, 20 ms]}\n",
        ["main.yaml:3", "not in one unit"],
    ),
    "unknown unit": (
        "space: s\nparameters:\n  x: {real: [1 Kib, 2 KiB]}\n",
        ["main.yaml:3", "there is no unit 'Kib'"],
    ),
    "unknown generator": (
        "space: s\nparameters:\n  x: {ordinal: pow3(1 .. 9)}\n",
        ["main.yaml:3", "did you mean 'pow2'"],
    ),
    "unknown parameter": (
        "space: s\nparameters:\n  rows: {ordinal: [1, 2]}\nconstraints:\n  - rowz < 2\n",
        ["main.yaml:5", "'rowz'", "did you mean 'rows'"],
    ),
    "unit mismatch": (
        "space: s\nparameters:\n  buffer: {ordinal: [1 KiB]}\nconstraints:\n  - buffer <= 20 ms\n",
        ["main.yaml:5", "a quantity in B does not go with a quantity in ms"],
    ),
    "word that is no value": (
        "space: s\nparameters:\n  f: {choice: [int8, mxfp4]}\nconstraints:\n  - f != 'mxfp5'\n",
        ["main.yaml:5", "f is never 'mxfp5'", "did you mean 'mxfp4'"],
    ),
    "no rule": (
        "space: s\nparameters:\n  a: {ordinal: [1]}\nconstraints:\n  - a + 1\n",
        ["main.yaml:5", "neither true nor false"],
    ),
    "no expression": (
        "space: s\nparameters:\n  a: {ordinal: [1]}\nconstraints:\n  - a <=\n",
        ["main.yaml:5", "found the end"],
    ),
    "empty space": (
        "space: s\nparameters:\n  a: {ordinal: [1, 2]}\nconstraints:\n  - a > 0\n  - a > 5\n",
        ["main.yaml:6", "no legal design is left once 'a > 5'", "a: 1, 2"],
    ),
    "condition in a circle": (
        "space: s\nparameters:\n  a: {ordinal: [1], when: b == 1}\n  b: {ordinal: [1], when: a == 1}\n",
        ["main.yaml:3", "depends on a itself"],
    ),
    "condition of itself": (
        "space: s\nparameters:\n  a: {ordinal: [1], when: a == 1}\n",
        ["main.yaml:3", "condition of itself"],
    ),
    "no parameters": ("space: s\n", ["main.yaml:1", "no parameters"]),
    "missing file": (
        "space: s\ninclude: {a: prat.yaml}\n",
        ["main.yaml:2", "there is no file", "prat.yaml"],
    ),
    "includes itself": ("space: s\ninclude: {a: main.yaml}\n", ["main.yaml:2", "includes itself"]),
    "alias": (
        "space: s\nparameters: &p\n  x: {ordinal: [1]}\n",
        ["main.yaml:2", "anchors and aliases"],
    ),
    "tag": ("space: !!python/object:os.system s\n", ["main.yaml:1", "tag"]),
    "two documents": ("space: s\n---\nspace: t\n", ["main.yaml:2", "one document"]),
    "double key": ("space: s\nspace: t\n", ["main.yaml:2", "already on line 1"]),
    "no mapping": ("- 1\n", ["main.yaml:1", "a mapping"]),
    "nothing": ("", ["main.yaml:1", "a mapping"]),
    "no yaml": ("space: [s\nparameters: 3", ["main.yaml:1", "'[' is opened here and never closed"]),
    "no yaml to the end": (
        "space: s\nparameters: {a: {boolean: true},\n",
        ["main.yaml:2", "'{' is opened here and never closed"],
    ),
    "a value to come": ("space: s\nparameters: {a: {ordinal:\n", ["main.yaml:2", "never closed"]),
    "deep": ("space: " + "[" * 5000 + "\n", ["main.yaml:1", "nested deeper"]),
    "long": ("space: s\n# " + "x" * (1 << 20), ["larger than 1024 KiB"]),
    "control character": ("space: s\x00\n", ["main.yaml", "no YAML"]),
    "endless range": (
        "space: s\nparameters:\n  x: {ordinal: 'multiples(1, 0 .. inf)'}\n",
        ["main.yaml:3", "no finite number"],
    ),
    "endless quantity": (
        "space: s\nparameters:\n  x: {real: [0 s, 1e400 s]}\n",
        ["main.yaml:3", "no finite number"],
    ),
    "reserved word": (
        "space: s\nparameters:\n  'true': {ordinal: [1]}\n",
        ["main.yaml:3", "'true' is no name"],
    ),
    "active by a real": (
        "space: s\nparameters:\n  x: {real: [0, 1]}\n  k: {ordinal: [1, 2], when: x > 0.5}\n",
        ["main.yaml:4", "a real parameter"],
    ),
    "unit of words": (
        "space: s\nparameters:\n  x: {choice: [a, b], unit: s}\n",
        ["main.yaml:3", "words have no unit"],
    ),
    "huge range": (
        "space: s\nparameters:\n  x: {integer: [1, 99999999999]}\n",
        ["main.yaml:3", "more than 100000 values"],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_told_with_its_line_and_how_to_mend_it(tmp_path, case):
    text, expected = BAD[case]
    told = mistakes_in(tmp_path, text)
    missing = [words for words in expected if words not in told]
    assert not missing, told


def test_all_mistakes_are_told_at_once(tmp_path):
    told = mistakes_in(
        tmp_path,
        "space: s\nparameters:\n  a: {ordinal: []}\n  b: {real: [2, 1]}\nconstraints:\n  - a <\n",
    )
    assert all(line in told for line in ("main.yaml:3", "main.yaml:4", "main.yaml:6"))


def test_a_circle_of_includes_names_both_places(tmp_path):
    told = mistakes_in(
        tmp_path,
        "space: s\ninclude:\n  a: other.yaml\n",
        other="space: o\ninclude:\n  b: main.yaml\n",
    )
    assert "other.yaml:3" in told
    assert "main.yaml" in told


def test_a_name_that_arrives_twice_is_told_with_both_places(tmp_path):
    told = mistakes_in(
        tmp_path,
        "space: s\ninclude: {a: part.yaml}\nparameters:\n  a.x: {ordinal: [1]}\n",
        part="space: p\nparameters:\n  x: {ordinal: [1, 2]}\n",
    )
    assert "'a.x' is declared twice" in told
    assert "part.yaml:3" in told
