"""Formulas stand in the page: complete, in the site's font, copied as TeX, never cut off."""

import re
from collections import Counter

import pytest
from fontTools.ttLib import TTFont
from tools.browsing import open_page
from tools.lesson_runs import all_pages
from tools.site_builds import read

NO_SIGN = r"\\begin\{\w+\}|\\end\{\w+\}|(?<=\\\\)\[[\w.]+\]"  # environments, and lengths behind \\
SIGNS = {  # what a command shows; "" if that is nothing of its own
    r"\alpha": "α", r"\tau": "τ", r"\cdot": "⋅", r"\cdots": "...", r"\dots": "...",
    r"\cos": "cos", r"\tanh": "tanh", r"\omega": "ω", r"\sin": "sin", r"\to": "→",
    r"\infty": "∞", r"\ln": "ln", r"\longrightarrow": "⟶", r"\ne": "≠", r"\neq": "≠",
    r"\partial": "∂", r"\sum": "∑", r"\times": "×", r"\top": "⊤", r"\underbrace": "⏟",
    **dict.fromkeys("{}_^&~", ""),
    **dict.fromkeys((r"\ ", r"\!", r"\,", r"\;", r"\quad", r"\qquad", "\\\\"), ""),
    **dict.fromkeys((r"\Bigl", r"\Bigr", r"\frac", r"\left", r"\right", r"\tfrac"), ""),
    **dict.fromkeys((r"\sqrt", r"\mathbb", r"\mathbf", r"\mathrm", r"\text"), ""),
}  # fmt: skip
ONE_OF_SEVERAL = str.maketrans({"-": "−", "𝔼": "E", "·": ".", "…": "...", "⋯": "..."} | {
    chr(ord("𝐚") + i): chr(ord("a") + i) for i in range(26)
})  # fmt: skip


def signs_of_tex(tex):
    """Count the signs that a formula is to show."""
    parts = re.findall(r"\\(?:[A-Za-z]+|.)|\S", re.sub(NO_SIGN, "", tex))
    unknown = [part for part in parts if part.startswith("\\") and part not in SIGNS]
    assert not unknown, f"say in SIGNS what {unknown} show"
    shown = "".join(SIGNS.get(part, part) for part in parts)
    return Counter((shown + "[]" * tex.count(r"\begin{bmatrix}")).translate(ONE_OF_SEVERAL))


def formulas_of(page):
    return read(page).select(".math > math")


@pytest.mark.parametrize("page", all_pages())
def test_each_formula_shows_what_its_tex_says(site, page):
    html = (site / f"{page}.html").read_text(encoding="utf-8")
    formulas = formulas_of(site / f"{page}.html")
    assert len(formulas) == html.count('class="math ') + html.count('class="math"')
    for formula in formulas:
        shown = re.sub(r"[\s\u2061-\u2064]", "", formula.text).translate(ONE_OF_SEVERAL)
        assert Counter(shown) == signs_of_tex(formula["data-tex"]), formula["data-tex"]


def test_what_formulas_show_is_in_the_first_font_which_is_small_and_as_the_sheet_says(site):
    """A page loads the second font where a sign is in no other: so far on none."""
    fonts = site / "_static/fonts"
    files = (TTFont(fonts / f"course-math{name}.woff2") for name in ("", "-more"))
    first, more = ({*map(chr, file.getBestCmap())} for file in files)
    sheet = (site / "_static/course.css").read_text(encoding="utf-8")
    ranges = re.search(r'course-math\.woff2"[^}]*unicode-range:([^;]*);', sheet)[1]
    ends = [[int(end, 16) for end in one.split("-")] for one in re.findall(r"U\+([\w-]+)", ranges)]
    named = {chr(code) for one in ends for code in range(one[0], one[-1] + 1)}
    assert first <= named and not (named - first) & more
    for page in all_pages():
        for formula in formulas_of(site / f"{page}.html"):
            assert set(formula.text) - first <= set("\u2061"), formula["data-tex"]
    assert (fonts / "course-math.woff2").stat().st_size < 40_000


def fonts_of_formulas(page):
    """Return the fonts that drew the formulas of a page: names, and whether they are the site's."""
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    letters = "article math :is(mi, mn, mo, mtext)"  # of what holds them nothing is told
    found = session.send("DOM.querySelectorAll", {"nodeId": root, "selector": letters})
    used = (session.send("CSS.getPlatformFontsForNode", {"nodeId": n}) for n in found["nodeIds"])
    return {(font["familyName"], font["isCustomFont"]) for some in used for font in some["fonts"]}


COPIED = """() => addEventListener("copy", ({clipboardData}) => {
  window.copied = ["text/plain", "text/html"].map((type) => clipboardData.getData(type));
})"""


def select(first, last):
    """Select from the middle of one element's text to the middle of another's."""
    return f"""() => {{
      const [first, last] = ["{first}", "{last}"].map((s) => document.querySelector(s));
      const range = document.createRange();
      range.setStart(first.firstChild, 0);
      range.setEnd(last.lastChild, last.lastChild.childNodes.length || last.lastChild.length);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    }}"""


COPIES = [
    ("article p", "article p", "(The width $d_k$), is small: $a<b$."),
    ("article p", "article p ~ p", "(The width $d_k$), is small: $a<b$.\n\nSecond line."),
    ("article p msub > mi", "article p msub > mi", "$d_k$"),
]

# How far the sign behind a formula stands from the top of the page and beyond its paragraph.
STOP = """stop => {
  const range = document.createRange();
  range.selectNode(stop.lastChild);
  const {top, right} = range.getBoundingClientRect();
  return [top, right - stop.closest("p").getBoundingClientRect().right];
}"""


def test_a_formula_scrolls_on_a_phone_can_be_referred_to_and_is_copied_as_tex(
    browser, small_address
):
    is_wide = "box => box.scrollWidth > box.clientWidth + 1"
    with open_page(browser, f"{small_address}formulas.html", width=360) as (page, problems):
        boxes = page.locator("article p span.math").all()
        assert [box.evaluate(is_wide) for box in boxes] == [False, False, True]
        assert [box.get_attribute("tabindex") for box in boxes] == [None, None, "0"]
        box = boxes[-1].bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 360
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        assert fonts_of_formulas(page) == {("CourseMath", True)}
        stops = page.locator("article p .held-stop")  # no line begins with them
        signs = stops.evaluate_all("all => all.map((stop) => stop.lastChild.data)")
        assert signs == ["),", ".", ")."]
        assert stops.first.evaluate("stop => getComputedStyle(stop).whiteSpace") == "nowrap"
        top, beyond = stops.last.evaluate(STOP)  # of the one that scrolls, which leaves room
        assert top < box["y"] + box["height"] and beyond <= 0.5
        block = page.locator("div.math")
        assert block.locator(".eqno").inner_text().startswith("(1)")
        assert block.locator("mtr").all_text_contents() == ["a=b", "c=d"]
        assert block.locator("math").get_attribute("display") == "block"
        reference = page.get_by_role("link", name="(1)", exact=True)
        assert reference.get_attribute("href").endswith(f"#{block.get_attribute('id')}")
        page.evaluate(COPIED)
        for first, last, plain in COPIES:
            page.evaluate(select(first, last))
            page.keyboard.press("Control+c")
            copied, formatted = page.evaluate("window.copied")
            assert copied.strip() == plain
            assert "<math" in formatted
        page.evaluate(select("article p ~ p", "article p ~ p"))  # no formula is in it
        page.keyboard.press("Control+c")
        assert page.evaluate("window.copied") == ["", ""]  # the browser fills it afterwards
        assert problems == []
