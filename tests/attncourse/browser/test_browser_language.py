"""The browser's languages are Python's: the same sentences and objections."""

import random

import pytest

from attncourse.tasks import concord, diagonals, induction, lookup, names

MODULES = ("language", "names", "tasks")

# What a message to a worker says of a task, and the same task here.
TASKS = {
    "concord": ("concord", None, concord),
    "names": ("names", None, names),
    "lookup": ("lookup", None, lookup()),
    "lookup of few": ("lookup", {"slots": 3, "values": 2}, lookup(slots=3, values=2)),
    "lookup of 52": ("lookup", {"slots": 52, "values": 3}, lookup(52, 3)),
    "diagonals": ("diagonals", None, diagonals()),
    "staircase": (
        "diagonals",
        {"offsets": [1, 2, 5], "symbols": 7, "length": 9},
        diagonals((1, 2, 5), symbols=7, length=9),
    ),
    "induction": ("induction", None, induction()),
    "no filler": (
        "induction",
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


def as_told(sentence):
    """A sentence as the browser's objects have it."""
    return {
        "words": list(sentence.words),
        "ids": list(sentence.ids),
        "answers": {name: list(answers) for name, answers in sentence.answers.items()},
        "partners": {
            name: {str(place): partner for place, partner in pairs.items()}
            for name, pairs in sentence.partners.items()
        },
    }


@pytest.mark.parametrize("case", TASKS)
def test_a_seed_gives_the_same_sentences_none_of_those_held_out(ask, case):
    name, options, task = TASKS[case]
    message = {"seed": 7, "heldOut": 300, "evaluated": 20}
    message |= {} if options is None else {"options": options}
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
    "the king saw the ball as it was wet.",
    "the kign saw a monk",
    "the king saw the",
    "the ball saw the ball",
    "the king saw the ball",
    "the ball saw the king .",
    "the king saw the nun because it",
    "the king saw the nun . the",
    "a king gave a nun their ball",
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
    for sentence in concord.sentences(400, seed=8):  # with a word spoilt
        words = list(sentence.words)
        beginnings.append(" ".join(words[: chooser.randrange(len(words) + 1)]))
        words[chooser.randrange(len(words))] = chooser.choice(concord.vocabulary)
        texts.append(" ".join(words))
    odd = ["Emma", "mellen", "", "a b", "jürgen", "a" * 16, "a" * 15]
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
    right = names.texts(300, seed=4)
    spoilt = [
        name[:place] + letter + name[place + cut :]
        for place, name in enumerate(right[:60])
        for place, letter, cut in [(place % len(name), "aeknlrs"[place % 7], place % 2)]
    ]
    odd = ["", "n", "ban", "bban", "banan", "bellel", "tolas", "x" * 16, "benennen", "yey"]
    texts = [*right, *spoilt, *odd]
    found = ask("return x.map((name) => names.names.brokenRules(name));", texts)
    assert found == [list(names.broken_rules(text)) for text in texts]
    kinds = {"shape", "harmony", "doubling", "ending"}
    assert {rule for broken in found for rule in broken} == kinds
