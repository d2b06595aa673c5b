"""Studies whose every word is an attack, in a real browser: seen as text on every page."""

from urllib.parse import quote

import httpx2 as httpx
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from tests.browsing import soon

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WATCH = "window.alert = window.confirm = window.prompt = () => { window.hurt = true; };"
STRANGE = (
    "img, iframe, object, embed, base, meta[http-equiv=refresh], [onerror], [onload], [onmouseover]"
)
NAMES = ("\"' onmouseover='alert(2)", "`${alert(1)}`]]>&lt;b&gt;", "\u202egnp.exe\u2066")


@pytest.fixture(scope="module")
def watched(chromium):
    """The browser, in which every page tells when a script asks somebody something."""
    made = chromium.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    chromium.set_window_size(1400, 1000)
    yield chromium
    chromium.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", made)
    chromium.get("about:blank")


@pytest.fixture
def browser(watched):
    watched.get_log("browser")
    return watched


def harm(driver) -> tuple[object, list, list]:
    """Whether a script of a study ran, elements that one made, and what the console says."""
    found = driver.find_elements(By.CSS_SELECTOR, STRANGE)
    strange = [one.get_attribute("outerHTML")[:200] for one in found]
    severe = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    return driver.execute_script("return window.hurt ?? null"), strange, severe


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/compare",
        "/studies/hostile",
        "/studies/hostile/trials",
        "/studies/hostile/trials?state=failed",
        *(f"/studies/hostile/trials/{number}" for number in range(12, 18)),
        "/studies/hostile/trials/0",
        "/studies/hostile/design?like=3",
        *(f"/studies/{quote(name, safe='')}" for name in NAMES),
        *(f"/studies/{quote(name, safe='')}/design" for name in NAMES),
        f"/studies/{quote(NAMES[0], safe='')}/trials/0",
    ],
)
def test_a_page_shows_what_a_study_says_as_text(browser, address, path: str) -> None:
    browser.get(f"{address}{path}")
    assert browser.find_element(By.TAG_NAME, "h1").text
    if "/design" not in path and path.count("/") == 2:  # its stream has come, and its parts
        soon(
            browser,
            lambda d: d.execute_script("return document.querySelector('#start').textContent"),
        )
        soon(browser, lambda d: not d.find_elements(By.CSS_SELECTOR, "#figures > p"))
    inline = browser.find_elements(By.CSS_SELECTOR, "script:not([src])")
    assert harm(browser) == (None, [], [])
    assert inline == []


def test_what_cannot_be_compared_is_told_as_text(browser, address) -> None:
    browser.get(f"{address}/compare/report?study=hostile&study=toy%205")
    hurt, strange, severe = harm(browser)
    assert "their " in browser.find_element(By.CSS_SELECTOR, "p.warn[role=alert]:not(#banner)").text
    assert (hurt, strange) == (None, [])
    assert all("409" in one["message"] for one in severe)


def test_a_report_that_was_saved_shows_it_as_text(browser, address, tmp_path) -> None:
    page = tmp_path / "report.html"  # where no policy of a server stands before it
    answer = httpx.get(f"{address}/studies/hostile/report", timeout=300)
    page.write_bytes(answer.content)
    browser.get(page.as_uri())
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")  # all are drawn
    soon(browser, lambda d: d.find_elements(By.CSS_SELECTOR, ".js-plotly-plot .main-svg"))
    assert harm(browser) == (None, [], [])


def test_a_design_with_such_a_value_is_judged_in_words(browser, address, local) -> None:
    browser.get(f"{address}/#token={local.token}")
    browser.get(f"{address}/studies/hostile/design")
    Select(browser.find_element(By.ID, "p-word")).select_by_index(2)
    browser.find_element(By.CSS_SELECTOR, "[data-action=judge]").click()
    words = soon(browser, lambda d: "legal" in d.find_element(By.ID, "answer").text)
    assert words
    assert harm(browser) == (None, [], [])


@pytest.mark.parametrize(
    "path",
    [
        "/studies/<img src=x onerror=alert(1)>",
        "/assets/<img src=x onerror=alert(1)>",
        "/studies/hostile/download/<img src=x onerror=alert(1)>",
        "/studies/hostile/trials?first=<img src=x onerror=alert(1)>",
        "/compare/report?study=<img src=x onerror=alert(1)>&study=b",
        "/<img src=x onerror=alert(1)>",
        "/login#token=<img src=x onerror=alert(1)>",
    ],
)
def test_an_error_says_what_was_asked_for_as_text(browser, address, path: str) -> None:
    browser.get(f"{address}{path}")
    hurt, strange, _ = harm(browser)  # the console says 404, or 401
    assert browser.find_element(By.TAG_NAME, "h1").text
    assert (hurt, strange) == (None, [])


def test_the_stream_keeps_to_its_fields(storage, hostile_study, address) -> None:
    with httpx.stream("GET", f"{address}/api/studies/hostile/events", timeout=300) as stream:
        lines = stream.iter_lines()
        first = [next(lines) for _ in range(4)]
    assert [line.partition(":")[0] for line in first] == ["retry", "", "event", "data"]
