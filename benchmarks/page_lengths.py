"""How long the pages of the built site are, and which are too long.

    jupyter-book build .
    python benchmarks/page_lengths.py                   # of _build/html
    python benchmarks/page_lengths.py path/to/html

course/lengths.py says what is counted; the limits are in tests/tools/page_limits.py.
"""

import sys
from pathlib import Path

from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "tests"), str(ROOT / "book/extensions")]

from course.lengths import length_of  # noqa: E402
from tools.page_limits import excess  # noqa: E402

site = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "_build/html"
if not (pages := sorted(site.glob("book/*.html"))):
    sys.exit(f"no pages in {site}: build the site, `jupyter-book build .`")
print(f"{'minutes':>7} {'words':>6} {'lines':>6} {'figures':>7} {'predictions':>11}  page")
for path in pages:
    length = length_of(BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser"))
    print(
        f"{length.minutes:7} {length.words:6} {length.lines:6} {length.figures:7} "
        f"{length.predictions:11}  {path.stem}"
    )
    for words in excess(path.stem, length):
        print(f"{'':41}  {words}")
