"""The browser's languages are Python's: the same sentences and objections."""

import random

import pytest
from tools.browser_models import as_told

from attncourse.tasks import concord, diagonals, induction, lookup, names

MODULES = ("language", "names", "tasks")

# What a message to a worker says of a task, and the same task here.
TASKS = {
    "concord": ({}, concord),
    "names": ({}, names),
    "lookup": ({"slots": 3, "values": 2}, lookup(slots=3, values=2)),
    "diagonals": (
        {"offsets": [1, 2, 5], "symbols": 7, "length": 9},
        diagonals((1, 2, 5), symbols=7, length=9),
    ),
    "induction": (
        {"symbols": 9, "length": 23, "chunks": [4, 3], "filler": 0},
        induction(symbols=9, length=23, chunks=(4, 3), filler=0),
    ),
}


@pytest.fixture
def ask(model_page):
    """Return what asks the engine's modules for the value of an expression."""
    listed = ", ".join(f'attnModules["engine/{name}.js"]' for name in MODULES)
    head = f"const [{', '.join(MODULES)}] = [{listed}];"
    return lambda expression, x=None: model_page.evaluate(f"(x) => {{ {head} {expression} }}", x)


@pytest.mark.parametrize("name", TASKS)
def test_a_seed_gives_the_same_sentences_none_of_those_held_out(ask, name):
    options, task = TASKS[name]
    message = {"seed": 7, "heldOut": 300, "evaluated": 20, "options": options}
    evaluated, fresh, relations = ask(
        """const [name, message] = x;
        const { next, heldOut, relations } = tasks.TASKS[name](message);
        return [heldOut, Array.from({ length: 400 }, next), relations];""",
        [name, message],
    )
    wanted = task.sentences(300, seed=2**31)
    assert evaluated == [as_told(sentence) for sentence in wanted[:20]]
    others = task.sentences(400, seed=7, without=wanted)
    assert fresh == [as_told(sentence) for sentence in others]
    assert relations == [{"name": own.name, "readout": own.readout} for own in task.relations]


TEXTS = [
    "The king that I feared   saw this BIG monk",
    "the kign saw a monk",
    "the king saw the",
    "the ball saw the ball",
    "the king saw the nun . the",
    "the big " * 12,
    "  ",
]


def read_here(read, text):
    """What is read here, or why not."""
    try:
        return as_told(read(text))
    except ValueError as error:
        return str(error)


def test_what_is_typed_is_read_or_refused_in_the_same_words_and_the_same_may_come_next(ask):
    chooser = random.Random(0)
    texts, beginnings = [*TEXTS], []
    for sentence in concord.sentences(400, seed=8):
        words = list(sentence.words)
        beginnings.append(" ".join(words[: chooser.randrange(len(words) + 1)]))
        words[chooser.randrange(len(words))] = chooser.choice(concord.vocabulary)  # spoilt
        texts.append(" ".join(words))
    odd = ["Emma", "mellen", "", "a b", "jürgen", "a" * 16]
    for task, there, own in ((concord, "language.concord", texts), (names, "names.names", odd)):
        read = ask(
            f"""return x.map((text) => {{
              try {{ return {there}.read(text); }} catch (error) {{ return error.message; }}
            }});""",
            own,
        )
        assert read == [read_here(task.read, text) for text in own]
        assert {type(found) for found in read} == {str, dict}
    follow = ask("return x.map(language.concord.nextWords)", beginnings)
    assert follow == [list(concord.next_words(beginning)) for beginning in beginnings]


def test_names_break_the_same_rules(ask):
    drawn = names.texts(300, seed=4)
    spoilt = [
        name[:place] + letter + name[place + cut :]
        for i, name in enumerate(drawn)
        for place, letter, cut in [(i % len(name), "aeknlrs"[i % 7], i % 2)]
    ]
    texts = [*drawn, *spoilt, "", "n", "x" * 16]
    found = ask("return x.map((name) => names.names.brokenRules(name));", texts)
    assert found == [list(names.broken_rules(text)) for text in texts]
    kinds = {"shape", "harmony", "doubling", "ending"}
    assert {rule for broken in found for rule in broken} == kinds
