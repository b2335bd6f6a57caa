"""Damage every kind of file that is read, and see that it is read or refused in one sentence.

    python tests/attack/fuzz.py --seed 0 --count 100000
    python tests/attack/fuzz.py --seed 0 --case 1234

The second repeats one case, as a failure tells it.
"""

import argparse
import logging
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from mutations import draw_for, mutated
from samples import reseal, targets, write_samples

from edgewise.core.errors import EdgewiseError

_SECONDS = 30  # for one case; a file that takes longer hangs its reader


class Fuzzer:
    """Valid files in a folder; each case damages one of them, reads it, and puts it back."""

    def __init__(self, folder, seed):
        self.seed = seed
        write_samples(folder)
        self.targets = targets(folder)

    def run(self, case):
        """One case: ``"read"`` or ``"refused"``; anything else is an AssertionError."""
        draw = draw_for(self.seed, case)
        target = self.targets[case % len(self.targets)]
        kept = {path: path.read_bytes() for path in target.path.parent.iterdir() if path.is_file()}
        try:
            target.path.write_bytes(mutated(kept[target.path], draw, text=target.text))
            if target.sealed and draw.random() < 0.8:
                reseal(target.path)
            with _in_time():
                target.read()
            return "read"
        except EdgewiseError as error:
            if 0 < len(str(error).strip()) < 5000:
                return "refused"
            raise self._failure(case, target, error) from error
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            raise self._failure(case, target, error) from error
        finally:
            for path in target.path.parent.iterdir():
                if path.is_file() and path not in kept:
                    path.unlink()
            for path, data in kept.items():
                path.write_bytes(data)

    def _failure(self, case, target, error):
        text = "".join(traceback.format_exception(error)).strip()
        return AssertionError(
            f"{target.name} gave {type(error).__name__}, not a sentence of EdgewiseError; repeat "
            f"it with python tests/attack/fuzz.py --seed {self.seed} --case {case}\n"
            f"{text[-3000:] if len(text) < 20_000 else text[:1500] + ' ... ' + text[-1500:]}"
        )


@contextmanager
def _in_time():
    """Within the time, and without a stack trace on the error stream."""

    def late(*_):
        raise TimeoutError(f"it took more than {_SECONDS} seconds")

    unseen = []  # exceptions that are printed, not raised
    hook, sys.unraisablehook = sys.unraisablehook, unseen.append
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook
        if unseen:
            raise RuntimeError(f"a stack trace was printed: {unseen[0].exc_value!r}")


def fuzz(folder, seed, count, first=0, say=lambda text: None):
    """Many cases: how many of each outcome, and the failures."""
    fuzzer = Fuzzer(folder, seed)
    outcomes, failures = Counter(), []
    for case in range(first, first + count):
        try:
            outcomes[fuzzer.run(case)] += 1
        except AssertionError as error:
            failures.append(str(error))
            say(f"{failures[-1]}\n")
        if case % 5000 == 4999:
            say(f"{case + 1} cases: {dict(outcomes)}, {len(failures)} failures")
    return outcomes, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="case to begin with")
    parser.add_argument("--case", type=int, default=None)
    wanted = parser.parse_args()
    warnings.simplefilter("error")
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        if wanted.case is not None:
            print(Fuzzer(Path(folder) / "files", wanted.seed).run(wanted.case))
            return
        say = partial(print, flush=True)
        files, first = Path(folder) / "files", wanted.first
        outcomes, failures = fuzz(files, wanted.seed, wanted.count, first, say)
    print(f"{wanted.count} cases of seed {wanted.seed}: {dict(outcomes)}, {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
