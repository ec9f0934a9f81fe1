"""The browser's languages are Python's: the same random numbers, sentences and objections."""

import random

import pytest

from attncourse.tasks import concord, diagonals, induction, lookup, names
from attncourse.widgets import _browser_code
from attnlib.rng import Sfc32

MODULES = ("language", "names", "sequences", "streams")

# What makes a task in the browser, and the same one here.
TASKS = {
    "concord": ("language.concord", concord),
    "lookup": ("sequences.makeLookup()", lookup()),
    "lookup of 52": ("sequences.makeLookup({ slots: 52, values: 3 })", lookup(52, 3)),
    "diagonals": ("sequences.makeDiagonals()", diagonals()),
    "staircase": (
        "sequences.makeDiagonals({ offsets: [1, 2, 5], symbols: 7, length: 9 })",
        diagonals((1, 2, 5), symbols=7, length=9),
    ),
    "induction": ("sequences.makeInduction()", induction()),
    "names": ("names.names", names),
    "no filler": (
        "sequences.makeInduction({ symbols: 9, length: 23, chunks: [4, 3], filler: 0 })",
        induction(symbols=9, length=23, chunks=(4, 3), filler=0),
    ),
}
every_task = pytest.mark.parametrize(("code", "task"), TASKS.values(), ids=TASKS)


@pytest.fixture(scope="module")
def ask(browser):
    """Return what asks a page with nothing but these modules for the value of an expression."""
    page = browser.new_page()
    for script in (_browser_code.shared_script(), _browser_code.lab_script()):
        page.add_script_tag(content=script)
    for name in MODULES:
        page.add_script_tag(
            content=_browser_code.own_script(_browser_code.FOLDER / f"engine/{name}.js")
        )
    names = ", ".join((*MODULES, "rng"))
    listed = ", ".join(f'attnModules["engine/{name}.js"]' for name in (*MODULES, "rng"))

    def evaluate(expression, argument=None):
        return page.evaluate(f"(x) => {{ const [{names}] = [{listed}]; {expression} }}", argument)

    yield evaluate
    page.close()


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


@pytest.mark.parametrize(("seed", "stream"), [(0, 0), (1, 0), (12345, 7), (2**32 - 1, 2**32 - 1)])
def test_chance_is_the_same_to_the_last_bit(ask, seed, stream):
    draw = """
      const drawn = rng.sfc32(...x);
      const times = (n, make) => Array.from({ length: n }, make);
      return [times(1000, drawn.uint32), times(1000, drawn.uniform), times(1000, drawn.normal),
        times(1000, (_, i) => drawn.randbelow(i + 1)), times(1000, () => drawn.bernoulli(0.3)),
        times(100, () => drawn.choice("abcdefg")),
        times(50, (_, size) => drawn.shuffled(times(size, (_, i) => i)))];
    """
    rng = Sfc32(seed, stream)
    assert ask(draw, [seed, stream]) == [
        [rng.uint32() for _ in range(1000)],
        [rng.uniform() for _ in range(1000)],
        [rng.normal() for _ in range(1000)],
        [rng.randbelow(i + 1) for i in range(1000)],
        [rng.bernoulli(0.3) for _ in range(1000)],
        [rng.choice("abcdefg") for _ in range(100)],
        [rng.shuffled(range(i)) for i in range(50)],
    ]


@every_task
def test_a_task_is_described_alike_and_a_seed_gives_the_same_sentences(ask, code, task):
    described = ask(f"return JSON.parse(JSON.stringify({code}))")
    assert described == {
        "name": task.name,
        "vocabulary": list(task.vocabulary),
        "readouts": {name: list(answers) for name, answers in task.readouts.items()},
        "relations": [{"name": r.name, "readout": r.readout} for r in task.relations],
        "causal": task.causal,
        "length": task.length,
    }
    assert list(described["readouts"]) == list(task.readouts)
    draw = "return Array.from({ length: 1000 }, () => next());"
    for seed in (0, 2026):
        drawn = ask(f"const next = streams.streamOf({code}, x); {draw}", seed)
        assert drawn == [as_told(sentence) for sentence in task.sentences(1000, seed=seed)]


def test_held_out_sentences_do_not_come(ask):
    held_out = lookup(slots=2, values=2).sentences(5, seed=3)
    drawn = ask(
        "const task = sequences.makeLookup({ slots: 2, values: 2 });"
        "const next = streams.streamOf(task, 4, x);"
        "return Array.from({ length: 100 }, () => next());",
        [as_told(sentence) for sentence in held_out],
    )
    task = lookup(slots=2, values=2)
    assert drawn == [as_told(one) for one in task.sentences(100, seed=4, without=held_out)]
    told = refusal(
        ask,
        "const task = sequences.makeLookup({ slots: 2, values: 1 });"
        "const next = streams.streamOf(task, 4);"
        "return streams.streamOf(task, 5, Array.from({ length: 99 }, next))();",
    )
    assert told.startswith("without ") and told.endswith(" 4") and "10000" in told


def refusal(ask, expression, argument=None):
    """The message with which the browser refuses something, or None if it doesn't."""
    return ask(
        f"try {{ {expression} }} catch (error) {{ return error.message; }} return null;", argument
    )


TEXTS = [
    "The king that I feared   saw this BIG monk",
    "the king saw the ball as it was wet.",
    "the kign saw a monk",
    "the the king saw",
    "the king saw the",
    "the ball saw the ball",
    "the king saw the ball",
    "the ball saw the king .",
    "the king saw the boy because",
    "the king saw the nun because it",
    "the king saw the nun . the",
    "a king gave a nun their ball",
    "saw",
    "the big " * 12,
    "",
    "  ",
]


def read_here(read, text):
    """What is read here, or why not."""
    try:
        return as_told(read(text))
    except ValueError as error:
        return str(error)


def read_there(ask, task, texts):
    return ask(
        f"""return x.map((text) => {{
          try {{ return {task}.read(text); }} catch (error) {{ return error.message; }}
        }});""",
        texts,
    )


def test_what_is_typed_is_read_or_refused_in_the_same_words(ask):
    chooser = random.Random(0)
    texts = [*TEXTS]
    for sentence in concord.sentences(400, seed=8):  # with a word spoilt
        words = list(sentence.words)
        words[chooser.randrange(len(words))] = chooser.choice(concord.vocabulary)
        texts.append(" ".join(words))
    read = read_there(ask, "language.concord", texts)
    assert read == [read_here(concord.read, text) for text in texts]
    assert {type(found) for found in read} == {str, dict}
    texts = ["Emma", "mellen", "", "a b", "jürgen", "a" * 16, "a" * 15]
    read = read_there(ask, "names.names", texts)
    assert read == [read_here(names.read, text) for text in texts]


def test_the_same_words_may_come_next(ask):
    for sentence in concord.sentences(40, seed=9):
        beginnings = [" ".join(sentence.words[:i]) for i in range(len(sentence) + 1)]
        assert ask("return x.map(language.concord.nextWords)", beginnings) == [
            list(concord.next_words(beginning)) for beginning in beginnings
        ]


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("rng.sfc32(-1)", "seed"),
        ("rng.sfc32(0.5)", "seed"),
        ("rng.sfc32(0, 2 ** 32)", "stream"),
        ("sequences.makeLookup({ slots: 1 })", "slots"),
        ("sequences.makeLookup({ values: 0 })", "values"),
        ("sequences.makeDiagonals({ offsets: [3, 1] })", "offsets"),
        ("sequences.makeDiagonals({ offsets: [] })", "offsets"),
        ("sequences.makeDiagonals({ length: 3 })", "length"),
        ("sequences.makeInduction({ symbols: 11 })", "symbols"),
        ("sequences.makeInduction({ chunks: [1] })", "chunks"),
        ("sequences.makeInduction({ filler: 1 })", "filler"),
    ],
)
def test_sizes_that_can_not_be_are_refused(ask, expression, named):
    assert refusal(ask, f"return {expression};").startswith(f"{named} must ")


RULES = "return x.map((name) => names.names.brokenRules(name));"


def test_names_break_the_same_rules(ask):
    right = names.texts(300, seed=4)
    spoilt = [
        name[:place] + letter + name[place + cut :]
        for place, name in enumerate(right[:60])
        for place, letter, cut in [(place % len(name), "aeknlrs"[place % 7], place % 2)]
    ]
    odd = ["", "a", "n", "ban", "bban", "banan", "bellel", "tolas", "x" * 16, "benennen", "yey"]
    texts = [*right, *spoilt, *odd]
    found = ask(RULES, texts)
    assert found == [list(names.broken_rules(text)) for text in texts]
    assert {rule for broken in found for rule in broken} == {
        "shape", "harmony", "doubling", "ending",
    }  # fmt: skip


def test_tokens_spell_the_same_names(ask):
    rows = [[26, 4, 12, 12, 0, 26, 26], [4, 12, 26, 0], [4, 26, 0, 26], [26, 26], [], [0, 1]]
    found = ask("return x.map((ids) => names.names.spelled(ids));", rows)
    assert found == [names.spelled(row) for row in rows]
