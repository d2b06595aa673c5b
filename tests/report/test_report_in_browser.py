"""The report in a real browser: drawn, quiet, sortable."""

import json
import shutil
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from dse.report.html import report_html

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="Chromium and its driver are not installed"
    ),
]


@pytest.fixture(scope="module")
def page(made_up, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    text = report_html(
        made_up.name, made_up.question, made_up.front, made_up.trials, made_up.events, {"a": "1"}
    )
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(page: Path, tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(executable_path=DRIVER))
    driver.set_window_size(1400, 1000)
    driver.get(page.as_uri())
    WebDriverWait(driver, 30).until(lambda d: len(drawn(d)) == 6)
    yield driver
    driver.quit()


def drawn(driver):
    return driver.find_elements(By.CSS_SELECTOR, ".js-plotly-plot .main-svg:first-child")


def column(driver, place: int) -> list[float]:
    cells = driver.find_elements(By.CSS_SELECTOR, f"tbody tr td:nth-child({place})[data-value]")
    return [float(cell.get_attribute("data-value")) for cell in cells]


def test_every_figure_is_drawn_with_a_size(browser) -> None:
    sizes = [svg.size for svg in drawn(browser)]
    assert len(sizes) == 6
    assert min(size["width"] for size in sizes) > 300
    assert min(size["height"] for size in sizes) > 200


def test_every_front_design_is_a_point_in_the_first_figure(browser, made_up) -> None:
    first = browser.find_element(By.CSS_SELECTOR, ".js-plotly-plot")
    points = first.find_elements(By.CSS_SELECTOR, ".scatterlayer .trace .points path")
    assert len(points) >= len(made_up.front.trials)


def test_the_console_has_no_severe_entry(browser) -> None:
    entries = browser.get_log("browser")
    assert [entry for entry in entries if entry["level"] == "SEVERE"] == []


def test_nothing_is_asked_of_the_network(browser, page: Path) -> None:
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
        and message["params"]["documentURL"] == page.as_uri()
    ]
    assert page.as_uri() in asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_no_button_sends_the_chart_away(browser) -> None:
    titles = {
        button.get_attribute("data-title")
        for button in browser.find_elements(By.CSS_SELECTOR, ".modebar-btn")
    }
    assert titles == {"Download plot as a PNG", "Zoom", "Pan", "Reset axes"}


def test_a_click_on_a_heading_sorts_and_another_turns_it_round(browser) -> None:
    energy = browser.find_elements(By.CSS_SELECTOR, "th button")[2]
    energy.click()
    rising = column(browser, 3)
    energy.click()
    falling = column(browser, 3)
    assert rising == sorted(rising)
    assert falling == sorted(rising, reverse=True)


def test_nothing_sticks_out_on_a_telephone(browser) -> None:
    metrics = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    width = browser.execute_script("return document.documentElement.scrollWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert width == 400
