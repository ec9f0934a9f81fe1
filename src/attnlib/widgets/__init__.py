"""Interactive parts of the lessons: alive with a kernel in JupyterLab and without one on a page.

Each widget is an anywidget: Python holds its state, the browser computes and draws. What a
reader changes is synced both ways and can be observed. Needs the extra `attnlib[widgets]`.
"""

# A widget is three files of one name, .py, .js and .css, and perhaps parts whose names begin with
# it. What several widgets use is in the folder shared.

from attnlib.widgets.answer import Answer
from attnlib.widgets.build_a_block import BuildABlock
from attnlib.widgets.cache_calculator import CacheCalculator
from attnlib.widgets.clock_hands import ClockHands
from attnlib.widgets.flow import Flow
from attnlib.widgets.gpt_steps import GptSteps
from attnlib.widgets.head_atlas import HeadAtlas
from attnlib.widgets.head_explorer import HeadExplorer
from attnlib.widgets.head_lab import HeadLab
from attnlib.widgets.head_mute import HeadMute
from attnlib.widgets.mask_painter import MaskPainter
from attnlib.widgets.name_lab import NameLab
from attnlib.widgets.online_softmax import OnlineSoftmax
from attnlib.widgets.predict import Predict
from attnlib.widgets.query_compass import QueryCompass
from attnlib.widgets.tokenizer import Tokenizer
from attnlib.widgets.two_heads import TwoHeads

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
