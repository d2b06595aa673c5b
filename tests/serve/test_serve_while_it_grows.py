"""What somebody does on a page stays while the study grows under it, and when they come back."""

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from dse.core.trial import Outcome, Report, State
from dse.schema.study.budget import Budget
from dse.study.study_engine import StudyEngine
from tests.browsing import soon

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NAME = "a-name-that-somebody-wrote-in-a-script-" * 4 + "end"
METRIC = "the_time_of_a_single_request_from_the_door_to_the_answer_at_the_99th_percentile"
ACTIVE = "return [document.activeElement.id, document.activeElement.selectionStart]"
STEPS = "return [...document.querySelectorAll('#trial tbody tr')].map((row) => row.cells[1].textContent)"
ORDER = (
    "return [...document.querySelectorAll('#front tbody tr')].filter((row) => !row.hidden)"
    ".map((row) => Number(row.cells[1].dataset.value))"
)


@pytest.fixture
def study(folder, storage, request):
    """A study of twenty trials of sixty, with a name of its own."""
    name = request.node.name[:60]
    made = StudyEngine.open(folder / "toy.yaml", name=name, storage=storage)
    made.run(budget=Budget(trials=20))
    yield made
    storage.delete(name)


@pytest.fixture
def url(address, study) -> str:
    return f"{address}/studies/{study.name}"


def shown(driver) -> int:
    """How many finished trials the parts of the page are of, once its figures are drawn too."""
    tile = "return document.querySelector('[data-tile=finished]').firstChild.textContent"
    waiting = driver.find_elements(By.CSS_SELECTOR, "#figures > p")
    return 0 if waiting else int(driver.execute_script(tile))


def grown(driver, study, trials: int) -> None:
    """The study goes on to so many trials, and the page shows them."""
    study.run(budget=Budget(trials=trials))
    soon(driver, lambda d: shown(d) == trials)


def test_filter_order_and_caret_stay(browser, study, url) -> None:
    browser.get(url)
    soon(browser, shown)
    for _ in range(2):  # once up, once down
        browser.find_elements(By.CSS_SELECTOR, "#front th button")[1].click()
    field = browser.find_element(By.ID, "filter")
    field.send_keys("fst", Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    grown(browser, study, 40)
    active = browser.execute_script(ACTIVE)
    ActionChains(browser).send_keys("a").perform()  # where the caret is
    grown(browser, study, 60)
    order = browser.execute_script(ORDER)
    front = [t.number for t in study.front.trials if t.design["mode"] == "fast"]
    assert (active, field.get_attribute("value")) == (["filter", 1], "fast")
    assert (len(order), order) == (len(front), sorted(order, reverse=True))


def test_the_way_back_and_a_link_show_what_was_chosen(browser, study, url) -> None:
    browser.get(url)
    soon(browser, shown)
    browser.find_elements(By.CSS_SELECTOR, "#front th button")[1].click()
    browser.find_element(By.ID, "filter").send_keys("fast")
    link = browser.find_element(By.CSS_SELECTOR, "#front tbody tr:not([hidden]) a")
    number = int(link.text)
    link.send_keys(" ")  # picks it
    grown(browser, study, 40)
    still = browser.execute_script("return document.activeElement.textContent")
    link.send_keys(Keys.ENTER)  # opens it
    soon(browser, lambda d: d.current_url == f"{url}/trials/{number}")
    browser.back()
    soon(browser, shown)
    picked, field = browser.execute_script(
        "return [[...picked], document.querySelector('#filter').value]"
    )
    order = browser.execute_script(ORDER)
    assert (still, picked, field) == (str(number), [number], "fast")
    assert 0 < len(order) < len(browser.find_elements(By.CSS_SELECTOR, "#front tbody tr"))
    assert order == sorted(order)


def test_a_table_is_not_made_anew_where_nothing_changed(browser, study, url) -> None:
    browser.get(url)
    soon(browser, shown)
    kept = (
        "return [...document.querySelectorAll('#front tbody tr')].filter((row) => row.kept).length"
    )
    browser.execute_script(
        "document.querySelectorAll('#front tbody tr').forEach((row) => { row.kept = true; })"
    )
    before = {trial.number for trial in study.front.trials}
    grown(browser, study, 60)
    after = {trial.number for trial in study.front.trials}
    assert 0 < len(before & after) < len(after)
    assert browser.execute_script(kept) == len(before & after)


def test_the_title_tells_how_far_it_is_and_a_used_budget_has_to_be_raised(
    browser, study, url
) -> None:
    browser.get(url)
    soon(browser, lambda d: d.title == f"paused 20 of 60 · {study.name} · dse")
    grown(browser, study, 60)
    soon(browser, lambda d: d.title == f"complete 60 of 60 · {study.name} · dse")
    start = browser.find_element(By.ID, "start")
    used = start.is_enabled(), browser.find_element(By.ID, "counted").text
    browser.find_element(By.ID, "up-to").send_keys("61")
    assert used == (False, "trials: more than 60 to go on")
    assert start.is_enabled()


def test_a_trial_that_is_not_over_is_renewed_until_it_is(browser, study, url) -> None:
    (trial,) = study.storage.add(study.name, [study.trials[0].design])
    browser.get(f"{url}/trials/{trial.number}")
    before = browser.find_element(By.TAG_NAME, "h1").text
    metrics = {"chip.time": 1.5, "chip.area": 8.0}
    study.storage.finish(study.name, {trial.number: Outcome(state=State.DONE, metrics=metrics)})
    soon(browser, lambda d: d.find_element(By.TAG_NAME, "h1").text == "Trial 20 done")
    soon(browser, lambda d: "1.5 s" in d.find_element(By.ID, "trial").text)
    assert before == "Trial 20 pending"


def test_a_trial_that_is_renewed_keeps_the_focus_and_the_order_of_its_log(
    browser, study, url
) -> None:
    (trial,) = study.storage.add(study.name, [study.trials[0].design])

    def reported(*steps: int) -> None:
        rows = [Report(number=trial.number, step=step, metrics={"loss": 1.0}) for step in steps]
        study.storage.report(study.name, rows)

    reported(1, 2)
    browser.get(f"{url}/trials/{trial.number}")
    browser.execute_script("document.querySelector('#trial .links a').focus()")
    for _ in range(2):
        browser.execute_script("document.querySelectorAll('#trial th button')[1].click()")
    link = browser.execute_script("return document.activeElement.textContent")
    reported(3)
    soon(browser, lambda d: d.execute_script(STEPS) == ["3", "2", "1"])
    kept = browser.execute_script("return document.activeElement.textContent")
    browser.execute_script("document.querySelectorAll('#trial th button')[1].focus()")
    reported(4)
    soon(browser, lambda d: d.execute_script(STEPS) == ["4", "3", "2", "1"])
    head = browser.execute_script("return document.activeElement.textContent")
    assert (link, kept, head) == ("earlier", "earlier", "step")


def test_the_order_of_the_trials_is_there_when_they_are_read_again(browser, url) -> None:
    browser.get(f"{url}/trials")
    for _ in range(2):
        browser.find_elements(By.CSS_SELECTOR, "#trials th button")[0].click()
    browser.refresh()
    first = browser.find_element(By.CSS_SELECTOR, "#trials tbody td").text
    assert (browser.current_url, first) == (f"{url}/trials?sort=-trial", "19")


def test_an_address_picks_nothing_but_numbers_of_trials(browser, url) -> None:
    told = []
    for asked in ("abc,", "x,3"):
        browser.get(f"{url}?picked={asked}")
        soon(browser, shown)
        told.append(browser.find_element(By.ID, "picked").text.partition(",")[0])
    assert told == ["", "1 picked"]


@pytest.fixture(scope="module")
def long_names(folder, storage, address):
    """The address of the page of a study with a long name, and with a metric that has one."""
    path = folder / "long.yaml"
    path.write_text((folder / "toy.yaml").read_text().replace("time", METRIC))
    StudyEngine.open(path, name=NAME, storage=storage).run(budget=Budget(trials=20))
    yield f"{address}/studies/{NAME}"
    storage.delete(NAME)


@pytest.mark.parametrize("path", ["", "/trials", "/trials/3", "/design"])
def test_long_names_stay_on_a_narrow_page(browser, long_names, path: str) -> None:
    metrics = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(f"{long_names}{path}")
    width = browser.execute_script("return document.documentElement.scrollWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert width <= 400
