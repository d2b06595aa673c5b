"""Characters that hide or turn a text are marks on every page; scripts still read what is so."""

import re
from urllib.parse import quote

import pytest

NAME = "\u202egnp.exe\u2066"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/compare",
        "/studies/hostile",
        "/studies/hostile/parts",
        "/studies/hostile/trials",
        "/studies/hostile/trials/16",
        "/studies/hostile/design",
        f"/studies/{quote(NAME)}",
        f"/studies/{quote(NAME)}/trials/0",
        f"/studies/{quote(NAME)}/nothing",
        f"/studies/{quote(NAME)}x",
        "/compare/report?study=hostile&study=toy%205",
        "/studies/hostile/report",
    ],
)
def test_no_page_has_such_a_character(client, hostile_study, path):
    answer = client.get(path)
    page = answer.text
    if path.endswith("/report"):  # it carries libraries of others
        page = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not RAW.search(page)
    assert "<u+" not in page.lower()  # a mark would be taken for an element
    if answer.status_code == 200 and ("16" in path or quote(NAME) in path or path.count("/") == 1):
        assert "&lt;U+202E&gt;" in page


def test_what_scripts_read_is_the_name_itself(client):
    page = client.get(f"/studies/{quote(NAME)}").text
    assert 'data-study="&#x202E;gnp.exe&#x2066;"' in page


def test_figures_draw_marks_and_data_stay_exact(client, hostile_study):
    figures = client.get("/api/studies/hostile/figures").text
    assert not RAW.search(figures)
    assert "u202e" not in figures.lower()
    trials = client.get("/studies/hostile/download/trials.json").json()
    reasons = [one["fault"]["reason"] for one in trials["trials"] if one["fault"]]
    assert any("\u202e" in reason for reason in reasons)
