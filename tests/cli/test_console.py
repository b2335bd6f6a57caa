"""What is said while training: to people, to machines, to TensorBoard, or to nobody."""

import json
import math
import os
import signal

import pytest

from edgewise.cli.console import Console, Interrupt, for_tensorboard
from edgewise.training import Epoch

EPOCH = Epoch(3, 0.5, math.nan, 0.75)


def spoken(console, capsys):
    shown = []
    console.tell("a sentence")
    console.epochs(lambda *what: shown.append(what), 10, 2)(1, EPOCH, EPOCH)
    return shown, capsys.readouterr().out.splitlines()


def test_people_get_sentences(capsys):
    shown, said = spoken(Console(), capsys)
    assert said == ["a sentence"]
    assert shown == [("model 2 of 2, loss 0.500, validation nan, best nan at 3", 3, 10)]


def test_machines_get_json_without_nan(capsys):
    _, said = spoken(Console(as_json=True), capsys)
    (event,) = [json.loads(line) for line in said]
    assert (event["event"], event["member"], event["validation_loss"]) == ("epoch", 1, None)


def test_nobody_gets_nothing(capsys):
    assert spoken(Console(quiet=True), capsys)[1] == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of tensorboard about itself
def test_tensorboard_gets_every_epoch(tmp_path):
    watch = for_tensorboard()(tmp_path)
    watch(0, EPOCH, EPOCH)
    watch(1, EPOCH, EPOCH)
    folders = sorted(path.parent.name for path in tmp_path.rglob("events.*"))
    assert folders == ["member-0", "member-1"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_asks_to_stop_and_a_second_one_stops(number, capsys):
    before = signal.getsignal(number)
    with Interrupt(Console()) as interrupt:
        assert not interrupt()
        os.kill(os.getpid(), number)
        assert interrupt()
        assert interrupt.signal == number
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert "stopping after this epoch; once more" in capsys.readouterr().err
    assert signal.getsignal(number) == before
