"""How many molecules a second do Edgewise and chemprop predict, from a file to a file?

    python benchmarks/predicting.py [--rows 20000]

Molecules of the screen for HIV (from a wheel, by pip), predicted by models of Lipophilicity: both
are trained for three epochs, which the time of predicting does not depend on, Edgewise with its
default network and its kernel regression on 3,360 molecules. Both are run through their command
lines, on one thread and on all processors (`edgewise predict` then starts processes by itself;
chemprop has its threads; once with its own featuriser, once with cuik-molmaker, which comes with
it), twice; the faster one counts. A second run on 1,000 molecules says what
the start takes; the rate is that of the other molecules, which for Edgewise on all processors has
the start of its processes in it. Writes benchmarks/results/predicting.json.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from versus_chemprop import (
    CHEMPROP,
    FAST,
    HERE,
    ONE_THREAD,
    WHEEL,
    environment,
    read,
    readable_rows,
    run,
    split_rows,
    write_table,
)

from edgewise.data.molecule_tables import MoleculeTable, molecule_table
from edgewise.data.tables import parse_text
from edgewise.data.wheels import Wheel, files_from_wheel

RESULTS = HERE / "results" / "predicting.json"
SCREEN, FEW, TURNS = "C_41127_HIV_3.csv", 1000, 2
EPOCHS = 3  # as few as chemprop takes
THREADS = (*ONE_THREAD, "NUMBA_NUM_THREADS")


def screen(work: Path) -> MoleculeTable:
    path = work / SCREEN
    if not path.exists():
        found = files_from_wheel(Wheel(WHEEL, (SCREEN,), lambda files: files))
        path.write_bytes(found[SCREEN])
    return molecule_table(parse_text(path.read_bytes(), str(path)))


def trained(work: Path, program: Path) -> dict[str, list[object]]:
    """The commands that predict, without files."""
    source = read("lipo", work)
    rows = split_rows(source.smiles, "random", 0)
    write_table(work / "lipo.csv", source, range(len(source)), targets=True)
    split = {"train": rows["train"], "val": rows["validation"], "test": rows["test"]}
    (work / "splits.json").write_text(json.dumps([split]))
    (work / "split.json").write_text(json.dumps(rows))
    ours, theirs = work / "edgewise-lipo", work / "chemprop-lipo"
    edgewise = [sys.executable, "-m", "edgewise"]
    if not (ours / "metrics.json").exists():
        run([*edgewise, "train", work / "lipo.csv", "--target", "exp", "--epochs", EPOCHS,
             "--split", work / "split.json", "--out", ours], work / "train.log")  # fmt: skip
    model = theirs / "model_0" / "best.pt"
    if not model.exists():
        run([program, "train", "--data-path", work / "lipo.csv", "--task-type", "regression",
             "--splits-file", work / "splits.json", "--epochs", EPOCHS, "--output-dir", theirs,
             "--accelerator", "cpu"], work / "train.log")  # fmt: skip
    predict = [program, "predict", "--model-paths", model, "--accelerator", "cpu",
               "--test-path", "{data}", "--preds-path", "{out}"]  # fmt: skip
    return {
        "edgewise": [*edgewise, "predict", ours, "{data}", "--out", "{out}"],
        "chemprop": predict,
        "chemprop, fast featuriser": [*predict, FAST],
    }


def seconds(command: list[object], data: Path, work: Path, threads: int) -> float:
    words = [str(word).format(data=data, out=work / "predicted.csv") for word in command]
    limit = dict.fromkeys(THREADS, str(threads))
    return run(words, work / "predict.log", limit)["wall"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--work", type=Path, default=HERE.parent / "build" / "versus_chemprop")
    parser.add_argument("--environment", type=Path, help="default: WORK/environment")
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    commands = trained(asked.work, environment(asked.environment or asked.work / "environment"))
    source = screen(asked.work)
    rows = readable_rows(source)[: asked.rows]
    for name, some in (("few", rows[:FEW]), ("many", rows)):
        lines = ["smiles", *(source.smiles[row] for row in some)]
        (asked.work / f"{name}.csv").write_text("\n".join(lines) + "\n")
    processors = os.cpu_count() or 1
    found: dict[str, object] = {"rows": len(rows), "chemprop": CHEMPROP}
    for threads in dict.fromkeys((1, processors)):
        rates = {}
        for name, command in commands.items():
            few, many = (
                min(seconds(command, asked.work / f"{size}.csv", asked.work, threads)
                    for _ in range(TURNS))
                for size in ("few", "many")
            )  # fmt: skip
            rates[name] = (len(rows) - FEW) / (many - few)
            key = f"{name}, {threads} thread(s)"
            found[key] = {"rows a second": round(rates[name]), "seconds": many, "of few": few}
        for name in list(rates)[1:]:
            ratio = round(rates["edgewise"] / rates[name], 2)
            found[f"edgewise / {name}, {threads} thread(s)"] = ratio
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
