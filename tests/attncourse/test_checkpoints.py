"""Trainings that are stopped and go on: bit for bit, from files that are whole or refused."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tools.refusing import assert_refused
from tools.tiny_task import Echo, echo

from attncourse.training import RECIPES, Recipe, checkpoint, loop, train
from attncourse.training.__main__ import main
from attnlib.model import TransformerModel

TINY = Recipe(
    "tiny",
    echo,
    {"d_model": 16, "num_heads": 2, "dropout": 0.1},
    steps=40,
    batch=8,
    lr=0.02,
    warmup=5,
    held_out=40,
)


def trained(recipe=TINY, **options):
    return train(recipe, **{"progress": False} | options)


def assert_same(found, wanted):
    """Fail unless two trainings ended bit for bit alike."""
    assert found.losses == wanted.losses
    assert found.evaluations == wanted.evaluations
    torch.testing.assert_close(found.model.state_dict(), wanted.model.state_dict(), rtol=0, atol=0)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "tiny.safetensors"


# --- it goes on ----------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", [None, 30])
@pytest.mark.parametrize("stops", [[1], [39], [40], [13, 13, 14, 26]])
def test_what_was_stopped_goes_on_as_if_it_had_not_been(file, pool, stops):
    recipe = TINY.changed(pool=pool)
    wanted = trained(recipe, seed=3, evaluate_every=13)
    for stop in stops:
        part = trained(recipe, seed=3, evaluate_every=13, checkpoint=file, stop=stop)
        assert part.losses == wanted.losses[:stop]
    del wanted.evaluations[13], wanted.evaluations[26], wanted.evaluations[39]
    found = trained(recipe, seed=3, checkpoint=str(file))
    for stop in (13, 26, 39, *stops[:-1], stops[-1] * (stops[-1] < 40)):
        found.evaluations.pop(stop, None)  # a training that is stopped is evaluated, too
    assert_same(found, wanted)
    assert os.listdir(file.parent) == [file.name]


def test_random_numbers_of_other_streams_go_on_too(file):
    """Dropout draws torch's, fresh sentences their own; without either the end would differ."""
    trained(checkpoint=file, stop=20)
    with safe_open(file, "pt") as stored:
        assert {"random", "losses"} <= {*stored.keys()}
        assert len(stored.metadata()["rng"].split(",")) == 4


def test_evaluations_from_before_are_kept(file):
    wanted = trained(evaluate_every=10)
    trained(evaluate_every=10, checkpoint=file, stop=20)
    assert_same(trained(evaluate_every=10, checkpoint=file), wanted)


def test_a_training_that_has_ended_takes_no_step_more(file, monkeypatch):
    wanted = trained(checkpoint=file)
    monkeypatch.setattr(loop, "take_step", None)
    again = trained(checkpoint=file, watch=lambda model: model.training)
    assert_same(again, wanted)
    assert again.seconds == wanted.seconds and again.watched == {40: False}
    assert not again.model.training


def test_a_checkpoint_leaves_torch_as_it_was(file):
    trained(checkpoint=file, stop=5)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    trained(checkpoint=file)
    assert torch.equal(torch.get_rng_state(), state) and torch.get_num_threads() == threads
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_was_read_hangs_on_the_file_no_more(file):
    """Windows lets nobody replace a file into which tensors still look."""
    trained(stop=5, checkpoint=file)
    state = loop.begin(TINY, 0, TransformerModel.of_sizes)
    checkpoint.read_checkpoint(file, TINY, 0, state)
    file.write_bytes(bytes(file.stat().st_size))  # in its place
    moments = [one["exp_avg_sq"] for one in state.optimizer.state.values()]
    assert any(moment.any() for moment in moments)


def test_the_tensors_have_names_that_can_be_read(file):
    model = trained(checkpoint=file, stop=7).model
    with safe_open(file, "pt") as stored:
        for name, parameter in model.named_parameters():
            assert torch.equal(stored.get_tensor(f"model.{name}"), parameter)
            moments = {"step", "exp_avg", "exp_avg_sq"}
            assert {f"optimizer.{name}.{one}" for one in moments} <= {*stored.keys()}
            assert stored.get_tensor(f"optimizer.{name}.step").item() == 7


# --- it is stopped -------------------------------------------------------------------------------


class Interrupting(Echo):
    """Sentences in whose midst somebody presses Ctrl-C."""

    def __init__(self, at, times=1):
        self.at, self.times, self.drawn = at, times, 0

    def draw(self, chance):
        self.drawn += 1
        if self.drawn == self.at:
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)
        return super().draw(chance)


@pytest.mark.parametrize("step", [0, 1, 17, 39])
def test_ctrl_c_loses_nothing(file, step):
    drawn = 40 + 8 * step + 3  # those held out, then amid the sentences of about this step
    with pytest.raises(KeyboardInterrupt, match=r"after \d+ of 40 steps.*goes on from"):
        trained(TINY.changed(task=Interrupting(at=drawn)), checkpoint=file)
    assert_same(trained(checkpoint=file), trained())


def test_ctrl_c_amid_a_step_waits_for_its_end(file, monkeypatch):
    taken, step = [], torch.optim.AdamW.step

    def interrupted(self, *inputs):
        taken.append(1)
        if len(taken) == 9:
            signal.raise_signal(signal.SIGINT)
        return step(self, *inputs)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt, match="after 9 of 40"):
        patch.setattr(torch.optim.AdamW, "step", interrupted)
        trained(checkpoint=file)
    assert_same(trained(checkpoint=file), trained())


def test_ctrl_c_amid_the_last_evaluation_still_ends_things(file):
    def watch(model):
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        trained(checkpoint=file, watch=watch)
    assert_same(trained(checkpoint=file), trained())


def test_ctrl_c_after_the_end_is_not_swallowed(file, monkeypatch):
    write = loop.write_checkpoint

    def interrupted(*inputs):
        write(*inputs)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(loop, "write_checkpoint", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trained(checkpoint=file)


def test_pressed_twice_it_ends_at_once(file):
    with pytest.raises(KeyboardInterrupt) as caught:
        trained(TINY.changed(task=Interrupting(at=60, times=2)), checkpoint=file)
    assert str(caught.value) == "" and not file.exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_a_checkpoint_ctrl_c_ends_at_once():
    task = Interrupting(at=60)
    with pytest.raises(KeyboardInterrupt):
        trained(TINY.changed(task=task))
    assert task.drawn == 60


def test_a_thread_trains_as_well(file):
    found = []
    thread = threading.Thread(target=lambda: found.append(trained(checkpoint=file)))
    thread.start()
    thread.join()
    assert_same(found[0], trained())


def test_what_breaks_down_has_its_last_checkpoint(file, monkeypatch):
    class Breaking(Echo):
        drawn = 0

        def draw(self, chance):
            self.drawn += 1
            if self.drawn > 40 + 8 * 20:
                raise MemoryError
            return super().draw(chance)

    monkeypatch.setattr(loop, "KEPT_EVERY", 7)
    with pytest.raises(MemoryError):
        trained(TINY.changed(task=Breaking()), checkpoint=file)
    assert len(trained(checkpoint=file, stop=14).losses) == 14  # no more steps are in it
    assert_same(trained(checkpoint=file), trained())


def test_a_checkpoint_that_can_not_be_written_leaves_the_old_one(file, monkeypatch):
    trained(checkpoint=file, stop=10)
    before = file.read_bytes()

    def full(_):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(checkpoint.os, "fsync", full)
        trained(checkpoint=file)
    assert file.read_bytes() == before and os.listdir(file.parent) == [file.name]


# --- the command ---------------------------------------------------------------------------------


def test_the_command_stops_at_ctrl_c_and_goes_on(tmp_path):
    file, options = tmp_path / "concord.safetensors", {"text": True, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "attncourse.training", "concord", "--seed", "7", "--quiet"]
    command += ["--checkpoint", str(file)]
    with subprocess.Popen(command, **options) as running:
        while not file.exists() and running.poll() is None:  # until the 100th step
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        _, told = running.communicate()
    if running.returncode != 130:  # a machine so quick that all was over
        assert running.returncode == 0
        return
    assert "of 400 steps; the same call goes on from" in told and str(file) in told
    taken = int(told.split("after ")[1].split()[0])
    assert 100 <= taken < 400
    part = trained(RECIPES["concord"], seed=7, checkpoint=file, stop=taken)
    assert part.losses == trained(RECIPES["concord"], seed=7, stop=taken).losses


def test_the_command_says_what_is_wrong_with_a_checkpoint(tmp_path, capsys):
    file = tmp_path / "concord.safetensors"
    file.write_bytes(b"nothing")
    assert main(["concord", "--quiet", "--checkpoint", str(file)]) == 2
    assert "damaged, or another file" in capsys.readouterr().err
    assert main(["staircase", "--checkpoint", str(file)]) == 2
    assert "--checkpoint are for recipes" in capsys.readouterr().err


# --- bad files -----------------------------------------------------------------------------------


def refused(path, words, recipe=TINY, **options):
    before = path.read_bytes() if path.is_file() else None
    assert_refused(lambda: trained(recipe, checkpoint=path, **options), words)
    assert before is None or path.read_bytes() == before  # what is refused isn't written over


def test_a_file_that_ends_early_is_refused(file):
    trained(checkpoint=file, stop=3)
    stored = file.read_bytes()
    for length in (0, 1, 7, 8, 100, len(stored) // 2, len(stored) - 1):
        file.write_bytes(stored[:length])
        refused(file, ["checkpoint", str(file), "damaged"])


def test_a_byte_that_was_changed_is_noticed_wherever_it_is(file):
    trained(checkpoint=file, stop=3)
    stored = file.read_bytes()
    for place in [*range(0, 400, 13), *range(400, len(stored), len(stored) // 60)]:
        file.write_bytes(stored[:place] + bytes([stored[place] ^ 1]) + stored[place + 1 :])
        refused(file, ["checkpoint", str(file)])


def test_weights_of_another_kind_are_refused(file):
    save_file({"W": torch.ones(2)}, file)
    refused(file, ["checkpoint", "a training wrote", "no training in it"])
    save_file({"W": torch.ones(2)}, file, metadata={"format": "pt"})
    refused(file, ["checkpoint", "format 'pt'"])
    save_file({"W": torch.ones(2)}, file, metadata={"format": "attnlib training 1"})
    refused(file, ["checkpoint", "format 'attnlib training 1'"])


@pytest.mark.parametrize(
    ("recipe", "options", "words"),
    [
        (TINY, {"seed": 1}, ["seed 0 instead of 1"]),
        (TINY.changed(lr=0.01), {}, ["lr=0.02 instead of 0.01"]),
        (TINY.changed(name="other"), {}, ["name='tiny' instead of 'other'"]),
        (TINY.changed(model={"num_heads": 4}), {}, ["model={", "'num_heads': 2", "instead of"]),
        (TINY, {"make": lambda task, **_: TransformerModel.of_sizes(task, 8, 2)},
            ["the model that is made now", "token_embedding.weight"]),
        (TINY, {"stop": 2}, ["stop must be at least the 3 steps", "got 2"]),
    ],
)  # fmt: skip
def test_a_training_of_another_kind_is_refused(file, recipe, options, words):
    trained(checkpoint=file, stop=3)
    refused(file, words, recipe, **options)


def test_where_no_checkpoint_can_be(tmp_path):
    assert_refused(lambda: trained(checkpoint=3), ["checkpoint", "path", "int"])
    refused(tmp_path / "tiny.pt", ["checkpoint", ".safetensors", "tiny.pt"])
    refused(tmp_path / "no" / "tiny.safetensors", ["checkpoint", "no folder"])
    folder = tmp_path / "folder.safetensors"
    folder.mkdir()
    refused(folder, ["checkpoint", "which is a folder"])


def test_missing_safetensors(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    assert_refused(lambda: trained(checkpoint=file), ["pip install safetensors"], ImportError)
