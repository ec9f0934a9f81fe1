"""Firefox and WebKit as a Debian has them: do pages live there as they do in Chromium?

Playwright speaks to Firefox itself (by WebDriver BiDi). Selenium drives WebKitGTK, in a window on a
screen that nobody sees (Xvfb).
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Playwright
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.webkitgtk.service import Service

NEEDED = {
    "Firefox": (("firefox-esr", "firefox"), "apt-get install firefox-esr"),
    "WebKit": (("WebKitWebDriver",), "apt-get install webkit2gtk-driver xvfb"),
}
KEYS = {
    "Space": Keys.SPACE, "ArrowRight": Keys.ARROW_RIGHT, "ArrowUp": Keys.ARROW_UP,
    "ArrowLeft": Keys.ARROW_LEFT,
}  # fmt: skip
WIDTH, HEIGHT = 1000, 900
SECONDS = 30  # until it is clear that something never comes


def find_engine(name: str) -> str | None:
    """Return the path of an engine, or of what drives it."""
    if name == "WebKit" and not shutil.which("Xvfb"):
        return None
    return next(filter(None, map(shutil.which, NEEDED[name][0])), None)


class Firefox:
    """A page in Firefox."""

    def __init__(self, playwright: Playwright, path: str):
        self.browser = playwright.firefox.launch(channel="moz-firefox", executable_path=path)
        self.page = self.browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})

    def open(self, address: str):
        self.page.goto(address)

    def evaluate(self, function: str, value: object = None) -> object:
        return self.page.evaluate(function, value)

    def press(self, key: str):
        self.page.keyboard.press(key)

    def close(self):
        self.browser.close()


def _started_screen(tries: int = 3) -> tuple[subprocess.Popen, str]:
    """Start a screen and return its number, too; two that start at once may want the same."""
    for _ in range(tries):
        end, begin = os.pipe()
        screen = subprocess.Popen(
            ["Xvfb", "-displayfd", str(begin), "-screen", "0", f"{WIDTH}x{HEIGHT}x24"],
            pass_fds=[begin],
            stderr=subprocess.DEVNULL,
        )
        os.close(begin)  # else a screen that can't start would be waited for without end
        with os.fdopen(end) as told:
            display = told.readline().strip()  # it comes when the screen is there
        if display:
            return screen, display
        screen.wait()
    raise RuntimeError(f"Xvfb didn't start in {tries} tries")


class WebKit:
    """A page in WebKitGTK's own small browser."""

    def __init__(self, _: Playwright, path: str):
        self.screen, display = _started_screen()
        environment = os.environ | {"DISPLAY": f":{display}"}
        usual = socket.getdefaulttimeout()
        socket.setdefaulttimeout(4 * SECONDS)  # Selenium takes it over, and else waits for ever
        try:
            self.driver = webdriver.WebKitGTK(service=Service(path, env=environment))
        finally:
            socket.setdefaulttimeout(usual)

    def open(self, address: str):
        self.driver.get(address)

    def evaluate(self, function: str, value: object = None) -> object:
        return self.driver.execute_script(f"return ({function})(...arguments)", value)

    def press(self, key: str):
        ActionChains(self.driver).send_keys(KEYS[key]).perform()

    def close(self):
        self.driver.quit()
        self.screen.terminate()
        self.screen.wait()


def wait_for(engine: Firefox | WebKit, function: str, *value: object, seconds: float = SECONDS):
    """Ask the page until it says yes."""
    end = time.monotonic() + seconds
    while not engine.evaluate(function, *value):
        assert time.monotonic() < end, f"never: {function}"
        time.sleep(0.05)


FOCUS = """(selector) => {
  document.querySelector(selector).focus();
  return document.activeElement.matches(selector);
}"""


@contextmanager
def started(name: str, playwright: Playwright) -> Iterator[Firefox | WebKit]:
    """Give an engine's page, and end the engine."""
    engine = {"Firefox": Firefox, "WebKit": WebKit}[name](playwright, find_engine(name))
    try:
        yield engine
    finally:
        engine.close()
