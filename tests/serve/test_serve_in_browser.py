"""The live view in a real browser: a study that grows, buttons that work, a quiet console."""

import shutil
import time

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

from dse.core.trial import State
from dse.study import Study, opened_storage

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
    "--enable-unsafe-swiftshader",
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="Chromium and its driver are not installed"
    ),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(executable_path=DRIVER))
    driver.set_window_size(1400, 1000)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address(storage, local, server_at):
    """A server over studies that ran, hostile names among them."""
    with server_at(storage, local) as found:
        yield found


def soon(driver, wanted, seconds: float = 90.0):
    return WebDriverWait(driver, seconds, poll_frequency=0.1).until(wanted)


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
    Study.open(folder / "measured.yaml", storage=url)
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


@pytest.mark.parametrize("wide", [1400, 400])
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/studies/toy%205",
        "/studies/toy%205/trials",
        "/studies/toy%205/trials/3",
        "/studies/toy%205/design",
        "/compare",
        "/login",
    ],
)
def test_a_page_is_quiet_and_nothing_sticks_out(browser, address, path: str, wide: int) -> None:
    metrics = {"width": wide, "height": 900, "deviceScaleFactor": 1, "mobile": wide == 400}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(f"{address}{path}")
    time.sleep(0.3)
    width = browser.execute_script("return document.documentElement.scrollWidth")
    scripts = browser.execute_script("return document.querySelectorAll('script:not([src])').length")
    images = browser.execute_script("return document.images.length")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert width <= wide
    assert (scripts, images) == (0, 0)
    assert complaints(browser) == []


@pytest.mark.parametrize(
    "path", ["/studies/toy%205/report", "/compare/report?study=toy%205&study=toy%206&joint=true"]
)
def test_a_report_is_drawn_under_its_own_policy(browser, address, path: str) -> None:
    browser.get(f"{address}{path}")
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
