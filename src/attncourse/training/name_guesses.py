"""What worse and better guesses of names cost."""

from collections.abc import Sequence

from attncourse.tasks import Sentence, names
from attncourse.training.baselines import bigram_loss, pair_counts, uniform_loss, unigram_loss


def name_guesses(known: Sequence[Sentence], held_out: Sequence[Sentence]) -> dict[str, float]:
    """Return the losses of guesses on names that are held out, in nats per letter.

    The end of a name counts as a letter.

    Args:
        known: names that "unigram" and "bigram" have counted.
        held_out: those that are guessed; "floor" is the loss of an oracle that knows the rules.
    """
    counts, of = (
        pair_counts([[*one.ids, names.boundary] for one in some], len(names.vocabulary))
        for some in (known, held_out)
    )
    log_likelihood = sum(names.log_probability(names.spelled(one.ids)) for one in held_out)
    return {
        "uniform": uniform_loss(len(names.vocabulary)),
        "unigram": unigram_loss(counts.sum(0), of.sum(0)),
        "bigram": bigram_loss(counts, of),
        "floor": -log_likelihood / int(of.sum()),
    }
