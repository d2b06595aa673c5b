"""The live view in a real browser: a study that grows, buttons that work, a quiet console."""

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from dse.core.trial import State
from dse.study.storage_access import opened_storage
from dse.study.study_engine import StudyEngine
from tests.browsing import soon

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def told(driver, css: str) -> str:
    """The text of an element, which may be renewed at any moment."""
    return driver.execute_script(f"return document.querySelector('{css}').textContent")


def points(driver) -> int:
    """How many designs the first figure shows."""
    return driver.execute_script(
        "return [...document.querySelectorAll('#figures .js-plotly-plot')].slice(0, 1)"
        ".flatMap((plot) => plot.data).filter((trace) => trace.customdata)"
        ".reduce((sum, trace) => sum + trace.customdata.length, 0)"
    )


def complaints(driver) -> list:
    return [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def test_a_front_grows_without_reload_and_pausing_and_going_on_work(
    browser, folder, local, server_at, tmp_path
) -> None:
    url = f"sqlite:///{tmp_path}/grows.db"
    StudyEngine.open(folder / "measured.yaml", storage=url)
    with server_at(url, local) as address:
        browser.get(f"{address}/#token={local.token}")
        assert browser.current_url == f"{address}/"  # the token is kept, and not shown
        browser.get(f"{address}/studies/measured")
        browser.execute_script("window.stays = true")
        soon(browser, lambda d: told(d, "#start") == "Start")
        browser.find_element(By.ID, "start").click()
        first = soon(browser, points)
        grown = soon(browser, lambda d: points(d) > first + 3)
        browser.find_element(By.ID, "pause").click()
        soon(browser, lambda d: told(d, "#state") == "paused")
        with_rows = len(browser.find_elements(By.CSS_SELECTOR, "#front tbody tr"))
        assert told(browser, "#start") == "Resume"
        assert browser.execute_script("return window.stays")
        assert (grown, with_rows > 0) == (True, True)
        assert complaints(browser) == []
        browser.get("about:blank")
    kept = opened_storage(url)
    assert kept.trials("measured").counts.get(State.RUNNING, 0) == 0
    kept.close()


def test_a_study_goes_on_as_far_as_is_said(browser, folder, local, server_at, tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/goes.db"
    StudyEngine.open(folder / "toy.yaml", storage=url).run()
    with server_at(url, local) as address:
        browser.get(f"{address}/#token={local.token}")
        browser.get(f"{address}/studies/toy")
        soon(browser, lambda d: told(d, "#start") == "Resume")
        browser.find_element(By.ID, "up-to").send_keys("65")
        browser.find_element(By.ID, "start").click()
        soon(browser, lambda d: told(d, "[data-tile=finished]").startswith("65"))
        assert (told(browser, "#answer"), complaints(browser)) == ("", [])
        browser.get("about:blank")


def looked_at(driver, wide: int, colours: str) -> None:
    """The page is seen on a screen of so many pixels, in these colours."""
    metrics = {"width": wide, "height": 900, "deviceScaleFactor": 1, "mobile": wide == 400}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": colours}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


@pytest.fixture
def screen(browser):
    """The browser, which has its own screen again afterwards."""
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/studies/toy%205",
        "/studies/toy%205/trials",
        "/studies/toy%205/trials?state=failed&first=7",
        "/studies/toy%205/trials/3",
        "/studies/toy%205/design",
        "/compare",
        "/login",
    ],
)
def test_a_page_is_quiet_and_nothing_sticks_out(screen, address, path: str) -> None:
    width = "return document.documentElement.scrollWidth"
    looked_at(screen, 400, "dark")
    screen.get(f"{address}{path}")
    soon(screen, lambda d: not d.find_elements(By.CSS_SELECTOR, "#figures > p"))
    narrow = screen.execute_script(width)
    looked_at(screen, 1400, "light")
    wide = screen.execute_script(width)
    scripts = screen.execute_script("return document.querySelectorAll('script:not([src])').length")
    images = screen.execute_script("return document.images.length")
    assert (narrow <= 400, wide <= 1400) == (True, True)
    assert (scripts, images) == (0, 0)
    assert complaints(screen) == []


def test_a_report_is_drawn_under_its_own_policy(browser, address) -> None:
    browser.get(f"{address}/compare/report?study=toy%205&study=toy%206")
    soon(browser, lambda d: d.find_elements(By.CSS_SELECTOR, ".js-plotly-plot .main-svg"))
    assert complaints(browser) == []


def test_the_table_of_the_front_is_sorted_and_filtered(browser, address) -> None:
    browser.get(f"{address}/studies/toy%205")
    soon(browser, points)
    rows = browser.find_elements(By.CSS_SELECTOR, "#front tbody tr")
    browser.find_elements(By.CSS_SELECTOR, "#front th button")[1].click()
    cells = browser.find_elements(By.CSS_SELECTOR, "#front tbody td:nth-child(2)")
    values = [float(cell.get_attribute("data-value")) for cell in cells]
    browser.find_element(By.ID, "filter").send_keys("slow")
    shown = [row for row in browser.find_elements(By.CSS_SELECTOR, "#front tbody tr") if row.text]
    assert values == sorted(values)
    assert 0 < len(shown) < len(rows)


def names(driver) -> list[str]:
    """The studies that the list shows, in its order."""
    rows = "[...document.querySelectorAll('#studies tbody tr')].filter((row) => !row.hidden)"
    return driver.execute_script(f"return {rows}.map((row) => row.cells[1].dataset.value)")


def test_the_list_is_sorted_and_filtered_and_ticked_studies_are_compared(
    browser, address, quick
) -> None:
    browser.get(f"{address}/")
    browser.execute_script("window.first = document.querySelector('#studies tbody tr')")
    browser.find_element(By.ID, "filter").send_keys("toy complete")
    filtered = names(browser)
    browser.find_elements(By.CSS_SELECTOR, "#studies th button")[0].click()
    up = names(browser)
    browser.find_elements(By.CSS_SELECTOR, "#studies th button")[0].click()
    down = names(browser)
    for name in ("toy 5", "toy 6"):
        browser.find_element(By.CSS_SELECTOR, f"[value='{name}']").click()
    once = browser.execute_script(ASKED)
    soon(browser, lambda d: d.execute_script(ASKED) > once + 1)  # the list came anew meanwhile
    kept = names(browser), browser.execute_script("return window.first.isConnected")
    button = browser.find_element(By.ID, "compare")
    words = button.text
    assert (sorted(filtered), up, down) == (up, ["toy 5", "toy 6"], ["toy 6", "toy 5"])
    assert (kept, words) == ((down, True), "Compare 2 studies")
    button.click()
    soon(browser, lambda d: "/compare/report?study=toy" in d.current_url)


ASKED = "return performance.getEntriesByType('resource').filter((one) => one.initiatorType === 'fetch').length"
SELECTED = (
    "return [...document.querySelectorAll('#figures .js-plotly-plot')].flatMap((plot) => plot.data)"
    ".filter((trace) => trace.customdata && trace.selectedpoints)"
    ".flatMap((trace) => [...trace.selectedpoints].map((row) => trace.customdata[row]))"
)


def test_designs_that_are_picked_stand_out_and_stay_so_when_the_figures_are_drawn_anew(
    browser, address
) -> None:
    browser.get(f"{address}/studies/toy%205")
    soon(browser, points)
    area = browser.find_element(By.CSS_SELECTOR, "#figures .nsewdrag")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", area)
    wide, high = area.rect["width"], area.rect["height"]
    corner = int(4 - wide / 2), int(4 - high / 2)
    pull = ActionChains(browser).move_to_element_with_offset(area, *corner).click_and_hold()
    pull.move_by_offset(int(wide - 8), int(high - 8)).release().perform()
    soon(browser, lambda d: d.find_element(By.ID, "picked").is_displayed())
    many = len(browser.execute_script(SELECTED))
    row = browser.find_element(By.CSS_SELECTOR, "#front tbody tr")
    number = int(row.find_element(By.TAG_NAME, "td").get_attribute("data-value"))
    row.find_element(By.CSS_SELECTOR, "td:last-child").click()
    soon(browser, lambda d: d.execute_script(SELECTED) == [number])
    browser.execute_script("wanted = true; return renew()")
    kept = browser.execute_script(SELECTED)
    faint = len(browser.find_elements(By.CSS_SELECTOR, "#front tr.out"))
    browser.find_element(By.CSS_SELECTOR, "#picked button").click()
    soon(browser, lambda d: not d.find_element(By.ID, "picked").is_displayed())
    assert (many > 1, kept) == (True, [number])
    assert faint == len(browser.find_elements(By.CSS_SELECTOR, "#front tbody tr")) - 1
    assert browser.execute_script(SELECTED) == []
    assert complaints(browser) == []


def test_a_page_says_that_its_server_is_gone_and_goes_on_with_the_next(
    browser, storage, local, server_at, quick
) -> None:
    with server_at(storage, local) as address:
        browser.get(f"{address}/studies/toy%205")
        soon(browser, points)
    words = soon(browser, lambda d: told(d, "#banner"))
    with server_at(storage, local, port=int(address.rpartition(":")[2])):
        soon(browser, lambda d: not told(d, "#banner"))
        browser.get("about:blank")
    assert words == "The server does not answer. Trying again until it does."


def test_a_design_by_hand_is_judged_in_words(browser, address, local) -> None:
    browser.get(f"{address}/login")
    browser.find_element(By.ID, "token").send_keys(local.token)
    browser.find_element(By.CSS_SELECTOR, "#login button").click()
    soon(browser, lambda d: d.current_url == f"{address}/")
    browser.get(f"{address}/studies/toy%205/design")
    for name, value in (("a", "64"), ("b", "64")):
        Select(browser.find_element(By.ID, f"p-{name}")).select_by_visible_text(value)
    browser.find_element(By.CSS_SELECTOR, "[data-action=judge]").click()
    words = soon(browser, lambda d: "legal" in told(d, "#answer") and told(d, "#answer"))
    assert words.startswith("Not legal: ")
    assert "a * b <= 1024" in words
    assert complaints(browser) == []


def test_a_wrong_token_is_told_and_not_kept(browser, address) -> None:
    browser.get(f"{address}/login")
    browser.execute_script("localStorage.clear()")
    browser.get(f"{address}/login")
    browser.find_element(By.ID, "token").send_keys("a-token-of-somebody-else")
    browser.find_element(By.CSS_SELECTOR, "#login button").click()
    words = soon(browser, lambda d: told(d, "#answer"))
    kept = browser.execute_script("return localStorage.length")
    assert (words, kept) == ("This is not the token.", 0)
