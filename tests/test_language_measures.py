"""Names and sentences stay as near to the field's as they have come; see ``language.py``."""

import re

import pytest

from tests.language import PACKAGES, ROOT, Source, measure

AT_MOST = {
    "dse": {
        "entries at the top": 22,
        "functions named by a participle, %": 3,
        "docstrings that open as a question, %": 2,
        "told, tell, said, say, nobody per 1,000 words": 0.5,
        "names of public classes used twice": 0,
        "names of files used twice": 0,
    },
    "dse_evaluators": {
        "entries at the top": 30,
        "functions named by a participle, %": 3,
        "docstrings that open as a question, %": 2,
        "told, tell, said, say, nobody per 1,000 words": 0.5,
        "names of public classes used twice": 0,
        "names of files used twice": 0,
    },
}
"""At most this much: names and sentences do not go back."""

METHODS = 26
"""Entries of ``dse/optimizers``: the methods, and the rooms of their parts."""


@pytest.mark.parametrize("name", PACKAGES)
def test_what_was_reached_is_kept(name):
    found = measure(Source(name, PACKAGES[name]))
    assert {
        title: found[title] for title, most in AT_MOST[name].items() if found[title][0] > most
    } == {}


def test_the_optimizers_can_be_seen():
    entries = {path.stem for path in (PACKAGES["dse"] / "optimizers").iterdir()}
    assert len(entries - {"__pycache__", "__init__"}) <= METHODS


REFUSED = re.compile(
    r"\b(told|said|says|nobody|somebody|whoever|so many|so much|the whole|goes on with|crew|deed"
    r"|stranger|where nobody)\b",
    re.IGNORECASE,
)
CODE = re.compile(r"```.*?```|``[^`]*``|`[^`]*`|^ +\w+: ", re.DOTALL | re.MULTILINE)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
HISTORY = ROOT / "docs" / "decisions"


@pytest.mark.parametrize("name", PACKAGES)
def test_docstrings_have_no_refused_word(name):
    docstrings = Source(name, PACKAGES[name]).docstrings()
    found = [(str(path), *REFUSED.findall(CODE.sub("", text))) for path, text in docstrings]
    assert [one for one in found if one[1:]] == []


@pytest.mark.parametrize("page", [page for page in PAGES if HISTORY not in page.parents], ids=str)
def test_pages_have_no_refused_word(page):
    assert REFUSED.findall(CODE.sub("", page.read_text(encoding="utf-8"))) == []
