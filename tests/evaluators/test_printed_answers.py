"""Odd outputs of programs: each is an answer or a reason, at once and without a traceback."""

from __future__ import annotations

import json

import pytest

from dse.core.metric import Failure
from dse_evaluators.generic.printed import printed_answer

NAMES = ("time", "loss")
GOOD = '{"time": 3.5, "loss": 0.25}'
PRETTY = json.dumps({"time": 3.5, "loss": {"value": 0.25, "spread": 0.01}}, indent=2)
BOM = "\ufeff"

ANSWERS = {
    "one line": GOOD,
    "over several lines": PRETTY,
    "windows' line ends": PRETTY.replace("\n", "\r\n"),
    "tabs": json.dumps(json.loads(GOOD), indent="\t"),
    "other keys": '{"time": 3.5, "host": "a", "loss": 0.25, "more": [1, {"a": 2}]}',
    "a list of objects over lines": json.dumps(
        {"time": 3.5, "loss": 0.25, "layers": [{"a": n} for n in range(40)]}, indent=1
    ),
    "whole numbers": '{"time": 3, "loss": 0}',
    "exponents": '{"time": 3.5e-300, "loss": 1E300}',
    "braces in a text": '{"time": 3.5, "loss": 0.25, "note": "} {"}',
    "escapes": '{"\\u0074ime": 3.5, "loss": 0.25}',
    "begun on the line of a brace": '{\n"time": 3.5,\n"loss": 0.25\n}',
    "the object in an object": '{"time": {\n"value": 3.5}, "loss": 0.25}',
    "a later object that ends on its own line": '{"a": 1}\n' + PRETTY,
}
BEFORE = {
    "nothing": "",
    "a mark": BOM,
    "words": "loading model ...\n",
    "a mark and words": f"{BOM}loading\n",
    "a progress bar": "\r 10 %\r 50 %\r100 %\n",
    "another object": '{"step": 1, "time": 9}\n',
    "half an object": '{"time": \n',
    "a brace": "{\n",
    "many braces": "{\n" * 3000,
    "replaced bytes": "\ufffd\ufffd\n",
    "nulls": "\0\0\n",
}
AFTER = {"nothing": "", "a line end": "\n", "blank lines": "\n\r\n  \n\t\n"}

WRONG = {
    "": "printed nothing",
    "\n \n": "printed nothing",
    BOM: "printed nothing",
    "done": "no JSON",
    f"{GOOD}\ndone": "no JSON",
    f"{GOOD} done": "no JSON",
    "{": "no JSON",
    "}": "no JSON",
    "{}": "the metric 'time' is missing; there is nothing",
    "{'time': 3.5, 'loss': 0.25}": "no JSON",
    '{"time": 3.5, "loss": 0.25,}': "no JSON",
    '{"time": 3.5 "loss": 0.25}': "no JSON",
    '{"time": 3.5, "loss": 0.25': "no JSON",
    '{"time": 3.5,\n"loss": 0.25': "no JSON",
    '"loss": 0.25}': "no JSON",
    '{"time": 3.5}': "the metric 'loss' is missing; there is time",
    '{"Time": 3.5, "loss": 0.25}': "the metric 'time' is missing",
    '{"time": NaN, "loss": 0.25}': "NaN is no number of JSON",
    '{"time": Infinity, "loss": 0.25}': "Infinity is no number of JSON",
    '{"time": -Infinity, "loss": 0.25}': "-Infinity is no number of JSON",
    '{"time": 1e999, "loss": 0.25}': "not finite",
    '{"time": -1e999, "loss": 0.25}': "not finite",
    '{"time": ' + "9" * 400 + ', "loss": 0.25}': "not finite",
    '{"time": ' + "9" * 5000 + ', "loss": 0.25}': "no JSON",
    '{"time": 0x10, "loss": 0.25}': "no JSON",
    '{"time": 1_000, "loss": 0.25}': "no JSON",
    '{"time": 1,5, "loss": 0.25}': "no JSON",
    '{"time": +1, "loss": 0.25}': "no JSON",
    '{"time": .5, "loss": 0.25}': "no JSON",
    '{"time": "3.5", "loss": 0.25}': "time is '3.5', which is no number",
    '{"time": "3.5 ms", "loss": 0.25}': "which is no number",
    '{"time": true, "loss": 0.25}': "time is True, which is no number",
    '{"time": null, "loss": 0.25}': "time is None, which is no number",
    '{"time": [3.5], "loss": 0.25}': "time is [3.5], which is no number",
    '{"time": [3.5, 0.1], "loss": 0.25}': "which is no number",
    '{"time": {}, "loss": 0.25}': "time is {}, which has no 'value'",
    '{"time": {"spread": 1}, "loss": 0.25}': "which has no 'value'",
    '{"time": {"value": "a"}, "loss": 0.25}': "time is 'a', which is no number",
    '{"time": {"value": 1, "spread": -1}, "loss": 0.25}': "below zero",
    '{"time": {"value": 1, "spread": "a"}, "loss": 0.25}': "the spread of time is 'a'",
    '{"time": {"value": 1, "spread": 1e999}, "loss": 0.25}': "not finite",
    '{"time": 1, "time": 2, "loss": 0.25}': "the answer says 'time' twice",
    '{"time": 1, "loss": 0.25, "time": 1}': "the answer says 'time' twice",
    '{"time": {"value": 1, "value": 2}, "loss": 0.25}': "the answer says 'value' twice",
    '{\n"time": 1,\n"loss": 0.25,\n"time": 2\n}': "the answer says 'time' twice",
    '{"a": {"": 1, "": 2}, "time": 1, "loss": 1}': "the answer says '' twice",
    "[]": "JSON but no object",
    "[1, 2]": "JSON but no object",
    f"[{GOOD}]": "JSON but no object",
    "3.5": "JSON but no object",
    '"done"': "JSON but no object",
    "null": "JSON but no object",
    "true": "JSON but no object",
    "[\n1\n]": "no JSON",
    "[" * 100_000: "no JSON",
    '{"a":' * 100_000: "no JSON",
    '{"a":' * 50_000 + "1" + "}" * 50_000: "no JSON",
    '{"a":\n' * 50_000 + "}": "no JSON",
    "{\n" * 300_000 + "}": "the metric 'time' is missing",
    "x" * 1_000_000: "no JSON",
    f"<json>{GOOD}</json>": "no JSON",
    f"```json\n{GOOD}\n```": "no JSON",
    f"answer: {GOOD}": "no JSON",
    f"{GOOD}{GOOD}": "no JSON",
    f"{GOOD};": "no JSON",
    "\0": "no JSON",
    "\x1b[0m" + GOOD + "\x1b[0m": "no JSON",
    "time,loss\n3.5,0.25": "no JSON",
    "time: 3.5\nloss: 0.25": "no JSON",
    "<html></html>": "no JSON",
    "Traceback (most recent call last):": "no JSON",
    '{"infeasible": ""}': "the program says ''",
    '{"infeasible": 3}': "the program says 3",
    '{"infeasible": true}': "the program says True",
    '{"infeasible": []}': "the program says []",
    '{"infeasible": "too large"}': "too large",
    '{"infeasible": "too large", "time": 3.5}': "too large",
    '{\n"infeasible": "too large"\n}': "too large",
    '{"infeasible": false}': "the metric 'time' is missing",
    '{"infeasible": null}': "the metric 'time' is missing",
}


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_object_at_the_end_is_the_answer_whatever_stands_before(before, answer):
    for after in AFTER.values():
        found = printed_answer(BEFORE[before] + ANSWERS[answer] + after, NAMES)
        assert not isinstance(found, Failure), found
        assert {name: found[name].why for name in NAMES} == dict.fromkeys(NAMES, "")


@pytest.mark.parametrize("output", WRONG, ids=range(len(WRONG)))
def test_what_is_no_answer_has_its_reason(output):
    found = printed_answer(output, NAMES)
    whys = [found.reason] if isinstance(found, Failure) else [one.why for one in found.values()]
    assert WRONG[output] in next(why for why in whys if why)
    assert max(map(len, whys)) < 700


def test_only_who_says_so_is_infeasible():
    kinds = [getattr(printed_answer(output, NAMES), "kind", "") for output in WRONG]
    said = [kind for output, kind in zip(WRONG, kinds, strict=True) if kind == "infeasible"]
    assert len(said) == 7
    assert {*kinds} == {"infeasible", "invalid", ""}


def test_spreads_are_read_over_several_lines():
    found = printed_answer(PRETTY, NAMES)
    assert (found["loss"].value, found["loss"].spread) == (0.25, 0.01)


def test_the_last_of_several_objects_counts():
    found = printed_answer('{"time": 1, "loss": 1}\n{\n"time": 2,\n"loss": 2\n}\n', NAMES)
    assert found["time"].value == 2
