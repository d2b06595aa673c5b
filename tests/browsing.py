"""How tests wait for a page."""

from collections.abc import Callable
from typing import Any

from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.support.ui import WebDriverWait

_RENEWED = (NoSuchElementException, StaleElementReferenceException)
"""A page may renew an element between the call that finds it and the one that reads it."""


def soon(driver: Any, wanted: Callable[[Any], Any], seconds: float = 300.0) -> Any:
    """Return what ``wanted`` gives of the page, as soon as it is true.

    Raises:
        TimeoutException: it is not true for so many seconds.
    """
    wait = WebDriverWait(driver, seconds, poll_frequency=0.1, ignored_exceptions=_RENEWED)
    return wait.until(wanted)
