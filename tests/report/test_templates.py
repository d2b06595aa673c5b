"""Templates escape what they are given, refuse what is missing, and are all sound."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import UndefinedError

import dse.report
from dse.report.html.render import _environment, call_macro, render

FOLDER = Path(dse.report.__file__).with_name("templates")
NAMES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.html"))
HOSTILE = "<script>alert('x')</script>\"&"
HARMLESS = "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&quot;&amp;"


@pytest.mark.parametrize("name", NAMES)
def test_every_template_can_be_compiled(name: str) -> None:
    assert _environment().get_template(name).name == name


@pytest.mark.parametrize("name", NAMES)
def test_no_template_turns_escaping_off(name: str) -> None:
    source = (FOLDER / name).read_text(encoding="utf-8")
    assert not re.findall(r"\|\s*safe\b|autoescape", source)


def test_html_is_marked_as_our_own_in_few_places():
    """Style sheets, scripts, figures in JSON, and what the templates themselves have rendered."""
    root = FOLDER.parents[1]
    marking = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(r"render import .*\btrusted\b|markupsafe", path.read_text(encoding="utf-8"))
    }
    rooms = {"api/notebook/parts.py", "report/html/render.py"}
    assert marking == rooms


def test_a_text_is_escaped_and_html_of_our_own_is_not() -> None:
    table = call_macro("macros.html", "table", [HOSTILE], [[HOSTILE]])
    assert table.count(HARMLESS) == 2
    effects = render("report/effects.html", effects=[(HOSTILE, [])], note=HOSTILE)
    assert effects.count(HARMLESS) == 2
    assert call_macro("notebook/parts.html", "side_by_side", [table]).count(table) == 1


def test_joined_html_is_a_text_again() -> None:
    joined = "".join([call_macro("macros.html", "soft", "a")])
    assert "&lt;p" in call_macro("notebook/parts.html", "side_by_side", [joined])


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="note"):
        render("report/effects.html", effects=[])


def test_the_library_is_imported_with_the_first_page() -> None:
    code = (
        "import sys, json, dse.report.html.study_page; print(json.dumps('jinja2' in sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert json.loads(told.stdout) is False
