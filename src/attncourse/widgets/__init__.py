"""Interactive parts of the lessons: alive with a kernel in JupyterLab and without one on a page.

Each widget is an anywidget: Python holds its state, the browser computes and draws. What a
reader changes is synced both ways and can be observed. Its other traits are fixed when it is made,
numbers as bytes, row by row. An argument that a widget can't take is named in a TypeError or
ValueError. Needs the extra `attnlib[widgets]`.
"""

from importlib.util import find_spec

if find_spec("anywidget") is None:
    raise ImportError("attncourse.widgets needs anywidget: pip install 'attnlib[widgets]'")

# A widget is a folder: widget.py, widget.js, widget.css and their parts. What several widgets use
# is in the folder shared.
from attncourse.widgets.answer.widget import Answer
from attncourse.widgets.build_a_block.widget import BuildABlock
from attncourse.widgets.cache_calculator.widget import CacheCalculator
from attncourse.widgets.clock_hands.widget import ClockHands
from attncourse.widgets.flow.widget import Flow
from attncourse.widgets.gpt_steps.widget import GptSteps
from attncourse.widgets.head_atlas.widget import HeadAtlas
from attncourse.widgets.head_explorer.widget import HeadExplorer
from attncourse.widgets.head_lab.widget import HeadLab
from attncourse.widgets.head_mute.widget import HeadMute
from attncourse.widgets.mask_painter.widget import MaskPainter
from attncourse.widgets.name_lab.widget import NameLab
from attncourse.widgets.online_softmax.widget import OnlineSoftmax
from attncourse.widgets.predict.widget import Predict
from attncourse.widgets.query_compass.widget import QueryCompass
from attncourse.widgets.tokenizer.widget import Tokenizer
from attncourse.widgets.two_heads.widget import TwoHeads

__all__ = [
    "Answer",
    "BuildABlock",
    "CacheCalculator",
    "ClockHands",
    "Flow",
    "GptSteps",
    "HeadAtlas",
    "HeadExplorer",
    "HeadLab",
    "HeadMute",
    "MaskPainter",
    "NameLab",
    "OnlineSoftmax",
    "Predict",
    "QueryCompass",
    "Tokenizer",
    "TwoHeads",
]
