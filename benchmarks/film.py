"""Film the start page: a model trains with one head, then with two, in the page's own figure.

    jupyter-book build .
    python benchmarks/film.py path/to/html     # two minutes; writes into book/assets

start-page.webp stands in the README. card.png is what chats show beside a link: the page's
headline, and the figure once both answers are right.
"""

import argparse
import io
import math
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))  # for the tools that tests share with this program

from PIL import Image  # noqa: E402
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402
from tools.browsing import AT_REST, FLAGS, HOW_TO_GET_ONE, find_browser, serve  # noqa: E402

ASSETS = ROOT / "book" / "assets"
FILM, CARD = ASSETS / "start-page.webp", ASSETS / "card.png"
CARD_SIZE = 1200, 630
LONGEST, HEAVIEST = 10.0, 1_000_000  # seconds, bytes
PAUSES = {"before": 0.8, "trained": 1.2, "end": 2.2}  # seconds in which nothing moves
TRAINING, MOST = 2.6, 30  # seconds that each training takes in the film, and its pictures
STEPS = ("Train", "trained"), ("Try 2 heads", "end")  # buttons, and the pause after each

# On the card the headline stands right above the arcs.
FOR_THE_CARD = """
  .bd-header-article { visibility: hidden; }
  .bd-article p:not(.attn-widget p), .headerlink { display: none; }
  .attn-widget :is(.attn-title, .attn-note, .attn-controls, progress) { display: none !important; }
  .attn-widget .attn-look { row-gap: 0 !important; }
  .attn-widget .attn-look > .attn-arcs { grid-template-rows: 7.5rem auto !important; }
  .bd-article h1, .cell, .course-widget { margin-block: 0.5rem !important; }
"""


def picture(page: Page, clip: dict[str, float]) -> Image.Image:
    """Return what the page shows in a part of the window."""
    return Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")


def opened(browser: Browser, address: str, **options: float) -> Page:
    """Return the start page, light, in the window in which it is filmed."""
    size = {"width": 1000, "height": 900}
    page = browser.new_page(viewport=size, color_scheme="light", **options)
    page.goto(f"{address}book/index.html")
    page.evaluate(AT_REST)
    return page


def place_of(page: Page, margin: int) -> dict[str, float]:
    """Return where headline and figure are, with a margin around them."""
    top = page.locator("article h1").bounding_box()["y"] - margin
    box = page.locator(".attn-widget").first.bounding_box()
    x, width = box["x"] - margin, box["width"] + 2 * margin
    return {"x": x, "y": top, "width": width, "height": box["y"] + box["height"] + margin - top}


def press(page: Page, button: str) -> None:
    page.get_by_role("button", name=button, exact=True).click(timeout=60_000)
    page.get_by_role("button", name="Pause").wait_for()


def film_training(page: Page, clip: dict[str, float]) -> list[Image.Image]:
    """Return pictures of the training that has begun, the last one of its end."""
    pictures = []
    while page.get_by_role("button", name="Pause").count():
        pictures.append(picture(page, clip))
    time.sleep(0.5)  # the last answers come, and lines settle
    return [*pictures[:: math.ceil(len(pictures) / MOST)], picture(page, clip)]


def film(browser: Browser, address: str) -> None:
    """Write the film."""
    page = opened(browser, address)
    clip = place_of(page, margin=12)
    frames = [(picture(page, clip), PAUSES["before"])]
    for button, pause in STEPS:
        press(page, button)
        *moving, last = film_training(page, clip)
        frames += [(shown, TRAINING / len(moving)) for shown in moving]
        frames.append((last, PAUSES[pause]))
    first, *others = [shown for shown, _ in frames]
    durations = [round(1000 * seconds) for _, seconds in frames]
    options = {"quality": 80, "method": 6, "loop": 0, "duration": durations}
    first.save(FILM, save_all=True, append_images=others, **options)
    seconds, size = sum(durations) / 1000, FILM.stat().st_size
    print(f"{FILM.name}: {len(frames)} pictures, {seconds:.1f} s, {size / 1000:.0f} kB")
    if seconds > LONGEST or size > HEAVIEST:
        sys.exit(f"that is more than {LONGEST} s or {HEAVIEST} bytes")


def draw_card(browser: Browser, address: str) -> None:
    """Write the card."""
    page = opened(browser, address, device_scale_factor=2)
    for button, _ in STEPS:
        press(page, button)
    page.locator(".attn-why").wait_for(timeout=60_000)
    page.add_style_tag(content=FOR_THE_CARD)
    time.sleep(0.5)
    clip = place_of(page, margin=24)
    wide, high = CARD_SIZE
    clip["height"] = clip["width"] * high / wide
    picture(page, clip).resize(CARD_SIZE, Image.Resampling.LANCZOS).save(CARD, optimize=True)
    print(f"{CARD.name}: {CARD.stat().st_size / 1000:.0f} kB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", nargs="?", type=Path, default=ROOT / "_build/html")
    site = parser.parse_args().site
    path = find_browser()
    if path is None:
        parser.error(HOW_TO_GET_ONE)
    with sync_playwright() as playwright, serve(site) as address:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        draw_card(browser, address)
        film(browser, address)
        browser.close()


if __name__ == "__main__":
    main()
