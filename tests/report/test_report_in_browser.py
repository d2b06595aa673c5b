"""The report in a real browser: drawn, quiet, sortable."""

import json
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from dse.report.html.study_page import report_html
from tests.browsing import soon

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FIGURES = 8


@pytest.fixture(scope="module")
def page(made_up, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    text = report_html(
        made_up.name, made_up.question, made_up.front, made_up.trials, made_up.events, {"a": "1"}
    )
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(page: Path, chromium):
    driver = chromium
    for log in ("browser", "performance"):
        driver.get_log(log)  # which empties it of what others looked at
    driver.set_window_size(1400, 1000)
    driver.get(page.as_uri())
    driver.first_drawn = len(drawn(driver))
    for event in ("beforeprint", "afterprint"):
        driver.execute_script(f"window.dispatchEvent(new Event('{event}'))")
    soon(driver, lambda d: len(drawn(d)) == FIGURES)
    return driver


def drawn(driver):
    return driver.find_elements(By.CSS_SELECTOR, ".js-plotly-plot .main-svg:first-child")


def column(driver, place: int) -> list[float]:
    cells = driver.find_elements(By.CSS_SELECTOR, f"tbody tr td:nth-child({place})[data-value]")
    return [float(cell.get_attribute("data-value")) for cell in cells]


def test_a_figure_far_below_waits_until_it_is_needed(browser) -> None:
    assert browser.first_drawn < FIGURES


def test_every_figure_is_drawn_with_a_size(browser) -> None:
    sizes = [svg.size for svg in drawn(browser)]
    assert len(sizes) == FIGURES
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
    flat = {"Download plot as a PNG", "Box Select", "Lasso Select", "Zoom", "Pan"}
    flat |= {"Autoscale", "Reset axes"}
    assert titles == flat | {"Orbital rotation", "Reset camera to default"}


def plot(driver, key: str):
    found = driver.find_element(By.CSS_SELECTOR, f'.js-plotly-plot[data-figure="{key}"]')
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
    return found


def dragged_over_all(driver, key: str) -> None:
    area = plot(driver, key).find_element(By.CSS_SELECTOR, ".nsewdrag")
    wide, high = area.rect["width"], area.rect["height"]
    (
        ActionChains(driver)
        .move_to_element_with_offset(area, int(2 - wide / 2), int(2 - high / 2))
        .click_and_hold()
        .move_by_offset(int(wide - 4), int(high - 4))
        .release()
        .perform()
    )
    soon(driver, lambda d: d.find_element(By.ID, "picked").is_displayed())


def let_go(driver) -> None:
    driver.find_element(By.CSS_SELECTOR, "#picked button").click()
    soon(driver, lambda d: not d.find_element(By.ID, "picked").is_displayed())


@pytest.mark.parametrize("key", ["pair-0-1", "parallel"])
def test_a_box_over_a_figure_picks_its_designs(browser, made_up, key: str) -> None:
    dragged_over_all(browser, key)
    assert f"{len(made_up.front.trials)} of them in the table" in browser.page_source
    let_go(browser)


def test_a_design_picked_in_the_table_stands_alone_in_every_figure(browser, made_up) -> None:
    row = browser.find_element(By.CSS_SELECTOR, "#front tbody tr")
    number = int(row.find_element(By.TAG_NAME, "td").get_attribute("data-value"))
    row.find_element(By.CSS_SELECTOR, "td:last-child").click()
    soon(browser, lambda d: d.find_element(By.ID, "picked").is_displayed())
    strong = browser.execute_script(
        "return [...document.querySelector('[data-figure=parallel].js-plotly-plot').data]"
        ".filter((line) => line.opacity > 0.5).map((line) => line.customdata[0])"
    )
    rest = browser.find_elements(By.CSS_SELECTOR, "#front tr.out")
    let_go(browser)
    assert strong == [number]
    assert len(rest) == len(made_up.front.trials) - 1


def test_the_filter_leaves_the_rows_that_have_its_words(browser) -> None:
    field = browser.find_element(By.ID, "filter")
    rows = browser.find_elements(By.CSS_SELECTOR, "#front tbody tr")
    words = rows[0].text.split()
    field.send_keys(f"{words[0]} {words[1]}")
    left = [row for row in rows if row.is_displayed()]
    field.send_keys(Keys.CONTROL, "a", Keys.DELETE)
    assert rows[0] in left
    assert 0 < len(left) < len(rows)


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


def picked_numbers(driver) -> set[int]:
    rows = driver.find_elements(By.CSS_SELECTOR, '#front tr[aria-selected="true"] td:first-child')
    return {int(cell.get_attribute("data-value")) for cell in rows}


def test_the_table_can_be_walked_and_picked_from_by_keys(browser) -> None:
    rows = browser.find_elements(By.CSS_SELECTOR, "#front tbody tr")
    browser.execute_script("arguments[0].focus()", rows[0])
    ActionChains(browser).send_keys(Keys.ARROW_DOWN, Keys.ENTER).perform()
    second = int(rows[1].find_element(By.TAG_NAME, "td").get_attribute("data-value"))
    assert picked_numbers(browser) == {second}
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    soon(browser, lambda d: not d.find_element(By.ID, "picked").is_displayed())


def test_the_pointer_is_told_of_the_design_below_it(browser, made_up) -> None:
    plot(browser, "pair-0-1")
    told = browser.execute_script(
        "return document.querySelector('[data-figure=\"pair-0-1\"].js-plotly-plot')"
        ".data.find((trace) => trace.name === 'front').hovertext"
    )
    assert len(told) == len(made_up.front.trials)
    assert told[0].startswith(f"<b>trial {made_up.front.trials[0].number}</b>")


def test_who_wants_no_motion_gets_none(browser) -> None:
    feature = {"name": "prefers-reduced-motion", "value": "reduce"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    line = browser.find_element(By.CSS_SELECTOR, ".js-plotly-plot .scatterlayer .trace")
    shown = line.value_of_css_property("transition-duration")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert shown == "0s"
    assert line.value_of_css_property("transition-duration") != "0s"
