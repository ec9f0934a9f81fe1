"""Each style sheet styles its own widget only, whatever else stands on a page and in what order."""

import pytest
import torch

from attnlib.widgets import (
    BuildABlock,
    HeadExplorer,
    HeadMute,
    MaskPainter,
    Predict,
    QueryCompass,
    TwoHeads,
)

# Every computed style of every element and of what stands before and after it, as texts. What only
# screen readers find has a place on the page, which isn't its look.
LOOK = """(root) => [root, ...root.querySelectorAll("*:not(.attn-unseen)")].flatMap((node) =>
  [null, "::before", "::after"].map((pseudo) => {
    const styles = getComputedStyle(node, pseudo);
    if (pseudo && styles.content === "none") return "";
    const values = Array.from(styles, (name) => `${name}: ${styles.getPropertyValue(name)}`);
    const name = `${node.localName} class="${node.getAttribute("class") ?? ""}" ${pseudo ?? ""}`;
    return `<${name}> ${values.sort().join("; ")}`;
  }))"""

PLAIN = """() => document.body.insertAdjacentHTML("beforeend", `<div id="plain">
  <p>p <code>c</code></p><details open><summary>s</summary><table>
  <caption>c</caption><tr><th>h</th><td>d</td></tr></table></details>
  <label><input type="radio"><input type="range"></label><button>b</button>
  <svg><text>t</text><rect/><path/></svg><fieldset><legend>l</legend></fieldset></div>`)"""


@pytest.fixture(scope="module")
def widgets():
    torch.manual_seed(0)
    tokens, q, k = ["the", "cat", "sat"], torch.randn(3, 4), torch.randn(3, 4)
    measured = {(False, None): {"gradient": torch.rand(2, 3) + 1}}
    return [
        BuildABlock([2, 8], measured, panels={"gradient": "size"}),
        HeadExplorer(tokens, q, k),
        HeadMute(torch.randn(2, 3, 4), torch.randn(4), tokens=tokens),
        MaskPainter(tokens, q, k),
        Predict("What?", ["this", "that"], 0, "So it is."),
        QueryCompass(torch.randn(3, 2), torch.randn(3, 2)),
        TwoHeads(torch.ones(1, 1), torch.ones(2, 3, 1, 1)),
    ]


def looks(page) -> list[list[str]]:
    """Return the look of each widget on a page, its numbers unfolded."""
    page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    tables = "[...document.querySelectorAll('details:has(.attn-table)')]"
    page.wait_for_function(f"{tables}.every((fold) => fold.querySelector('tbody tr'))")
    page.evaluate("document.activeElement.blur()")
    return [widget.evaluate(LOOK) for widget in page.locator(".attn-widget").all()]


def differences(found: list[str], expected: list[str]) -> list[str]:
    """Return for each element that looks otherwise the styles in which it does."""
    assert len(found) == len(expected)
    return [
        f"{one.split('>')[0]}> {sorted(set(one.split('; ')) ^ set(other.split('; ')))}"
        for one, other in zip(found, expected, strict=True)
        if one != other
    ]


def test_no_widget_changes_another_in_any_order(show, widgets):
    alone = [look for widget in widgets for look in looks(show(widget))]
    there, back = looks(show(*widgets)), looks(show(*widgets[::-1]))[::-1]
    for widget, own, first, second in zip(widgets, alone, there, back, strict=True):
        assert len(own) > 20, f"{widget} drew nothing"
        assert differences(first, own) == [], type(widget).__name__
        assert differences(second, own) == [], type(widget).__name__


def test_no_widget_changes_the_page_around_it(show, widgets):
    without, beside = show(widgets[0]), show(*widgets)
    without.evaluate("document.querySelectorAll('style').forEach((sheet) => sheet.remove())")
    for page in (without, beside):
        page.evaluate(PLAIN)
    found, expected = (page.locator("#plain").evaluate(LOOK) for page in (beside, without))
    assert differences(found, expected) == []
