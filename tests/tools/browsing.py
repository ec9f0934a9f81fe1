"""Looking at pages in a real browser and saying what is wrong with them."""

import contextlib
import functools
import http.server
import shutil
import threading
from pathlib import Path

import axe_playwright_python

# The first has no windows of its own to draw around a page, and opens one in a third of the time.
BROWSERS = (
    "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome",
    "google-chrome-stable",
)  # fmt: skip
HOW_TO_GET_ONE = "install one, for example with `apt-get install chromium`"
# The last one finds no other host, so that a test never waits for one.
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]  # fmt: skip
OF_THE_THEME = ("[PST]", "[SBT]", "[togglebutton]")  # its scripts report their progress
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")


def find_browser() -> str | None:
    """Return the path of a Chromium on this machine."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextlib.contextmanager
def serve(folder: Path):
    """Serve a folder on this machine alone and give its address, which ends with a slash."""

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def copyfile(self, source, outputfile):
            with contextlib.suppress(ConnectionError):  # the page was closed while it loaded
                super().copyfile(source, outputfile)

    class Server(http.server.ThreadingHTTPServer):
        request_queue_size = 128  # a page asks for many files at once

    server = Server(("127.0.0.1", 0), functools.partial(Silent, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


@contextlib.contextmanager
def open_page(browser, address: str, *, scheme: str = "light", width: int = 1280, touch=False):
    """Open a page and give it when it is at rest, with the list of what goes wrong meanwhile.

    What goes wrong on other pages of its context is in that list, too.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce",
        has_touch=touch,
    )  # fmt: skip
    context.set_default_timeout(30_000)
    page = context.new_page()
    problems = []
    host = address.split("/")[2]

    def note_message(message):
        if not (message.type == "log" and message.text.startswith(OF_THE_THEME)):
            problems.append(f"console {message.type}: {message.text}")

    def note_request(request):
        if not request.url.startswith(("data:", "blob:")) and request.url.split("/")[2] != host:
            problems.append(f"request to another host: {request.url}")

    def note_response(response):
        if response.status >= 400:
            problems.append(f"status {response.status}: {response.url}")

    context.on("console", note_message)
    context.on("request", note_request)
    context.on("response", note_response)
    context.on("requestfailed", lambda request: problems.append(f"request failed: {request.url}"))
    context.on("weberror", lambda error: problems.append(f"page error: {error.error}"))
    page.on("websocket", note_request)
    page.goto(address, wait_until="load")
    page.evaluate(AT_REST)
    yield page, problems
    context.close()


# Fonts there, every picture there that isn't hidden (far ones wait until they come near the
# window), every widget drawn or failed. What never comes isn't waited for without end.
AT_REST = """async () => {
  const pictures = [...document.images].filter((image) => image.checkVisibility());
  for (const image of pictures) image.loading = "eager";
  const late = new Promise((done) => setTimeout(done, 30_000));
  await Promise.race([Promise.allSettled(pictures.map((image) => image.decode())), late]);
  await Promise.race([document.fonts.ready, late]);
  const waiting = () =>
    [...document.querySelectorAll(".course-widget")].some((place) => !place.hasChildNodes());
  for (let i = 0; i < 200 && waiting(); i++) await new Promise((done) => setTimeout(done, 25));
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""

# What is folded, covered, or shown one at a time as in the museum must be right, too.
OPEN_ALL = """() => {
  const all = (selector) => document.querySelectorAll(selector);
  for (const fold of all(":is(.course-code, .tag_hide-input) > details, details.exercise"))
    fold.open = true;
  for (const closed of all("article section[hidden]")) closed.removeAttribute("hidden");
  for (const cover of all("[data-covers]")) {
    const [button, answer] = cover.children;
    cover.removeAttribute("data-covers");
    button.hidden = true;
    answer.inert = false;
  }
}"""

# The theme's button goes from "auto" over light and dark.
PRESS = """() => {
  const root = document.documentElement;
  const before = root.dataset.theme;
  const button = document.querySelector(".theme-switch-button");
  for (let i = 0; i < 3 && root.dataset.theme === before; i++) button.click();
  return root.dataset.theme;
}"""


def switch_theme(page) -> str:
    """Press the theme's button until the page's other colors are there; return their name."""
    theme = page.evaluate(PRESS)
    page.evaluate(AT_REST)
    return theme


# What a page must have, whatever it is about. Returns what it lacks.
AUDIT = r"""(scheme) => {
  const problems = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const root = document.documentElement;
  const HEADING = "main h1:not(#jb-print-docs-body h1)"; // that one is for paper

  if (root.dataset.theme !== scheme) problems.push(`theme is ${root.dataset.theme}`);
  if (all(HEADING).length !== 1) problems.push(`${all(HEADING).length} main headings`);
  if (root.scrollWidth > root.clientWidth) {
    const sticksOut = (node) => node.getBoundingClientRect().right > root.clientWidth + 1;
    const names = all("body *").filter(sticksOut).map((node) => node.getAttribute("class")).join();
    problems.push(`page is ${root.scrollWidth} wide in a window of ${root.clientWidth}: ${names}`);
  }

  const ids = all("[id]:not(svg *)").map((element) => element.id);
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i)))
    problems.push(`two elements with id ${id}`);

  for (const image of all("img")) {
    const alt = (image.alt ?? "").trim();
    if (alt.length < 10 || /^[0-9a-f]{16,}|\.(svg|png)$|_images\//.test(alt))
      problems.push(`image without meaningful alt text: ${image.src}`);
    if (image.checkVisibility() && !image.naturalWidth) problems.push(`no image: ${image.src}`);
  }
  for (const image of all("article img"))
    if (!image.closest("figure")?.querySelector("figcaption")?.checkVisibility())
      problems.push(`figure without caption: ${image.src}`);
  // Of a drawing that stands in for a widget see test_without_script.py.
  for (const figure of all("article figure:has(img):not(.tag_drawing-of-widget *)")) {
    const shown = [...figure.querySelectorAll("img")].filter((i) => i.checkVisibility()).length;
    if (shown !== 1) problems.push(`figure that shows ${shown} drawings: ${figure.id}`);
  }

  // Tables and directives that nothing read, such as a cell's; dashes may have been made long.
  const words = document.querySelector("article")?.cloneNode(true);
  for (const code of words?.querySelectorAll("pre, code, script, .math") ?? []) code.remove();
  const RAW = /\| ?:?[-–—]+:? ?\||:::|\{[a-z:-]+\}|\$\S+\$/g;
  for (const [markup] of words?.textContent.matchAll(RAW) ?? [])
    problems.push(`raw: ${markup}`);
  for (const alert of all('[role="alert"]')) problems.push(`alert: ${alert.textContent}`);
  for (const view of all('script[type="application/vnd.jupyter.widget-view+json"]'))
    if (!view.nextElementSibling?.hasChildNodes()) problems.push("a widget drew nothing");
  return problems;
}"""

# axe-core needs most of its time for the contrast of texts, of which a page has thousands in a few
# colors. So it judges one of a kind: the same tags, classes, backgrounds and opacities around it,
# and the same color and size. Other words of listings become plain text, for its other rules.
ONE_TEXT_OF_A_KIND = """() => {
  const kinds = new Map(); // of what stands around a text
  const kindOf = (box) => {
    if (!box) return "";
    if (!kinds.has(box)) {
      const {backgroundColor, backgroundImage, opacity} = getComputedStyle(box);
      const look = [backgroundColor, backgroundImage, opacity];
      const own = [box.tagName, box.getAttribute("class"), ...look];
      kinds.set(box, `${kindOf(box.parentElement)} > ${own}`);
    }
    return kinds.get(box);
  };
  const isJudged = ({nodeType, data}) => // axe-core passes over single letters
    nodeType === Node.TEXT_NODE && data.trim().length > 1;
  const judged = new Set();
  const chosen = [];
  const plain = [];
  for (const element of document.body.querySelectorAll("*")) {
    if (!element.checkVisibility()) continue;
    const {color, fontSize, fontWeight} = getComputedStyle(element);
    const kind = [color, fontSize, fontWeight, kindOf(element)].join();
    if ([...element.childNodes].some(isJudged) && !judged.has(kind)) {
      judged.add(kind);
      chosen.push(element);
    } else if (element.matches("pre span:not(:has(span))")) plain.push(element);
  }
  // Only now: each change before would have every style computed anew.
  for (const element of chosen) element.toggleAttribute("data-judged", true);
  for (const word of plain) word.replaceWith(word.textContent);
}"""
RUN_AXE = """async () => {
  axe.configure({rules: [{id: "color-contrast", selector: "[data-judged]"}]});
  return (await axe.run({resultTypes: ["violations"]})).violations;
}"""


def audit(page, scheme: str) -> list[str]:
    """Return what is wrong on an opened page, its code, exercises and covered answers open."""
    page.evaluate(OPEN_ALL)
    page.evaluate(AT_REST)
    return page.evaluate(AUDIT, scheme)


def violations_on(page) -> list[str]:
    """Return what axe-core finds on an opened page: rule, place and what to do."""
    page.evaluate(ONE_TEXT_OF_A_KIND)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(RUN_AXE)
    return [
        f"{rule['id']}: {node['html'][:200]}: {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"]
    ]
