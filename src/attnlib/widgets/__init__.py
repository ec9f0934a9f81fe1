"""Interactive parts of the lessons: alive with a kernel in JupyterLab and without one on a page.

Each widget is an anywidget: Python holds its state, the browser computes and draws. What a
reader changes is synced both ways and can be observed. Needs the extra `attnlib[widgets]`.
"""

# A widget is three files of one name, .py, .js and .css, and perhaps parts whose names begin with
# it. What several widgets use is in the folder shared.

from attnlib.widgets.answer.widget import Answer
from attnlib.widgets.build_a_block.widget import BuildABlock
from attnlib.widgets.cache_calculator.widget import CacheCalculator
from attnlib.widgets.clock_hands.widget import ClockHands
from attnlib.widgets.flow.widget import Flow
from attnlib.widgets.gpt_steps.widget import GptSteps
from attnlib.widgets.head_atlas.widget import HeadAtlas
from attnlib.widgets.head_explorer.widget import HeadExplorer
from attnlib.widgets.head_lab.widget import HeadLab
from attnlib.widgets.head_mute.widget import HeadMute
from attnlib.widgets.mask_painter.widget import MaskPainter
from attnlib.widgets.name_lab.widget import NameLab
from attnlib.widgets.online_softmax.widget import OnlineSoftmax
from attnlib.widgets.predict.widget import Predict
from attnlib.widgets.query_compass.widget import QueryCompass
from attnlib.widgets.tokenizer.widget import Tokenizer
from attnlib.widgets.two_heads.widget import TwoHeads

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
