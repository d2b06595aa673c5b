"""The report as it is printed: whole, on white, without what only a screen has."""

import base64
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from dse.report.html.study_page import report_html

pytestmark = [pytest.mark.browser, pytest.mark.slow]

A4_PX = 700
"""Between the margins, at 96 dots an inch."""

RIGHT = "return Math.max(...[...document.querySelectorAll(arguments[0])].map((one) => one.getBoundingClientRect().right))"
BACK = "return getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def paper(made_up, chromium, tmp_path_factory):
    """The page, made ready for paper in a dark browser."""
    path: Path = tmp_path_factory.mktemp("paper") / "report.html"
    path.write_text(
        report_html(made_up.name, made_up.question, made_up.front, made_up.trials), encoding="utf-8"
    )
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    chromium.set_window_size(1400, 1000)
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [dark]})
    chromium.get(path.as_uri())
    chromium.screen_back = chromium.execute_script(BACK)
    size = {"width": A4_PX, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    told = {"media": "print", "features": [dark]}
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", told)
    chromium.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    yield chromium
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_paper_is_white_where_the_screen_is_dark(paper) -> None:
    assert paper.screen_back == "rgb(20, 23, 27)"
    assert paper.execute_script(BACK) == "rgb(255, 255, 255)"


def test_every_figure_is_drawn_and_within_the_page(paper) -> None:
    figures = paper.find_elements(By.CSS_SELECTOR, "script[data-figure]")
    drawn = paper.find_elements(By.CSS_SELECTOR, ".js-plotly-plot .main-svg:first-child")
    assert len(drawn) == len(figures) == 8
    assert paper.execute_script(RIGHT, ".js-plotly-plot .main-svg") <= A4_PX


def test_tables_are_cut_nowhere(paper) -> None:
    assert paper.execute_script(RIGHT, ".scroll > table:not(#front table)") <= A4_PX
    assert paper.execute_script(RIGHT, "#front table") <= 1030  # its pages lie on their side


@pytest.mark.parametrize("control", ["#filter", "#picked", ".modebar-container", ".screen"])
def test_controls_are_left_out(paper, control: str) -> None:
    assert not any(one.is_displayed() for one in paper.find_elements(By.CSS_SELECTOR, control))


def test_the_page_becomes_a_document_of_several_sheets(paper) -> None:
    asked = {"printBackground": True, "preferCSSPageSize": True}
    told = paper.execute_cdp_cmd("Page.printToPDF", asked)
    content = base64.b64decode(told["data"])
    assert content.startswith(b"%PDF")
    assert content.count(b"/Type /Page\n") >= 5
