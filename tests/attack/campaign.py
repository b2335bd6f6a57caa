"""Kill commands at random moments, go on, and compare with a run that nobody disturbed.

    python tests/attack/campaign.py --kills 200 --cases 100000

Each command runs in a fork of a process that has imported everything, so that the kills fall into
its work and not into its imports. It is killed, run again or resumed, killed again, until it gets
through; then its outputs are held against those of the undisturbed run. Results go to
``benchmarks/results/attack.json`` after every round; ``--keep`` adds to what is there.
"""

import argparse
import csv
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "attack.json"
COUNTS = ("lost", "different", "half_written", "orphans")
_SECONDS = 300  # that a command may take


@dataclass
class Plan:
    """A command that is killed, and how to tell whether it lost something."""

    name: str
    start: list[str]
    again: list[str]  # how to go on
    outputs: Any  # folder -> what is compared
    share: float  # of the kills
    check: Any = lambda folder: []  # what is half-written right after a kill
    workers: bool = False  # whether it starts processes
    before: dict[str, Any] = field(default_factory=dict)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--cases", type=int, default=0, help="of the fuzzer, before the kills")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="add to the results that are there")
    parser.add_argument("--only", default="", help="commands whose names begin so")
    wanted = parser.parse_args()
    found = json.loads(RESULTS.read_text()) if wanted.keep and RESULTS.exists() else {}
    if wanted.cases:
        found["fuzz"] = _fuzzed(wanted.seed, wanted.cases)
        _write(found)
    campaign = found.setdefault("kills", {})
    done = sum(one["kills"] for one in campaign.values())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        _attack(Path(folder), wanted, done, found)
    totals = {name: sum(one[name] for one in campaign.values()) for name in ("kills", *COUNTS)}
    print(", ".join(f"{name.replace('_', '-')} {value}" for name, value in totals.items()))
    failed = any(totals[name] for name in COUNTS) or found.get("fuzz", {}).get("failures")
    sys.exit(1 if failed else 0)


def _fuzzed(seed, cases):
    """The fuzzer in a process of its own, whose memory and warnings are its own."""
    import subprocess

    fuzz = [sys.executable, str(Path(__file__).parent / "fuzz.py")]
    start = time.monotonic()
    ended = subprocess.run([*fuzz, "--seed", str(seed), "--count", str(cases)], check=False)
    return {
        "seed": seed,
        "cases": cases,
        "failures": int(ended.returncode != 0),
        "minutes": round((time.monotonic() - start) / 60, 1),
    }


def _attack(folder, wanted, done, found):
    draw = random.Random(f"{wanted.seed}:{done}")
    _write_data(folder)
    plans = [p for p in _plans(folder) if p.name.startswith(wanted.only)]
    seconds = {}
    for plan in plans:
        place = folder / f"undisturbed-{plan.name.replace(' ', '-')}"
        place.mkdir()
        process = _fork(_filled(plan.start, place))
        while not os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            seconds[plan.name] = _processor_seconds(process, plan)
            time.sleep(0.05 if plan.workers else 0.002)
        code = _finish(process)
        assert code == 0, f"{plan.name} failed undisturbed with code {code}"
        plan.before = plan.outputs(place)
        if plan.name == "fetch":
            _damaged_cache.known = plan.before
        print(f"{plan.name}: {seconds[plan.name]:.2f} s undisturbed", flush=True)
    campaign = found["kills"]
    number = 0
    while sum(one["kills"] for one in campaign.values()) < wanted.kills:
        plan = draw.choices(plans, [plan.share for plan in plans])[0]
        counts = Counter(_round(plan, folder / f"round-{number}", seconds[plan.name], draw))
        number += 1
        mine = campaign.setdefault(plan.name, dict.fromkeys(("kills", "rounds", *COUNTS), 0))
        for name in mine:
            mine[name] += counts[name] + (name == "rounds")
        _write(found)


def _round(plan, place, seconds, draw):
    """Kill a command two to five times on its way; count what went wrong."""
    place.mkdir()
    counts = Counter()
    command = plan.start
    for _ in range(draw.choice((2, 3, 4, 5))):
        process = _fork(_filled(command, place))
        # By its work and not by the clock, for the machine may have other work, too.
        moment, deadline = draw.uniform(0, 0.95 * seconds), time.monotonic() + _SECONDS
        while _processor_seconds(process, plan) < moment and time.monotonic() < deadline:
            time.sleep(0.05 if plan.workers else 0.002)
            if not _at_work(process):
                break
        children = _descendants(process)
        if _kill(process):
            counts["kills"] += 1
        counts["orphans"] += _alive_after(children)
        faults = plan.check(place)
        if faults:
            counts["half_written"] += len(faults)
            print(f"{plan.name}: half-written {faults}", flush=True)
        command = plan.again if _begun(plan, place) else plan.start
    code = _finish(_fork(_filled(command, place)))
    if code != 0:
        counts["lost"] += 1
        print(f"{plan.name}: went on with code {code} in {place}", flush=True)
        return counts
    after = plan.outputs(place)
    if after != plan.before:
        names = [name for name in plan.before if after.get(name) != plan.before[name]]
        counts["lost" if any(name not in after for name in names) else "different"] += 1
        print(f"{plan.name}: differs in {names}", flush=True)
    else:
        shutil.rmtree(place)
    return counts


def _begun(plan, place):
    return plan.name.startswith("train") and (place / "run" / "recipe.json").exists()


def _filled(command, place):
    return [word.replace("PLACE", str(place)) for word in command]


def _fork(arguments):
    """Run a command in a fork of this process; gives its number."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for number, target in ((0, quiet), (1, quiet), (2, log)):
            os.dup2(target, number)
        for word in list(arguments):  # VARIABLE=value
            if "=" in word and word.split("=")[0].isupper():
                name, _, value = word.partition("=")
                os.environ[name] = value
                arguments.remove(word)
        sys.argv = ["edgewise", *arguments]
        from edgewise.cli import main as command_line

        command_line()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        os._exit(code)


def _finish(process):
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    _kill(process)
    return -1


def _kill(process):
    """Whether it was still at work."""
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    return os.WIFSIGNALED(status)


def _processor_seconds(process, plan):
    """What a process, and its workers where it has some, have used of the processor."""
    ticks = 0
    for one in (process, *(_descendants(process) if plan.workers else ())):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _descendants(process):
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(line.rpartition(")")[2].split()[1])
    found, waiting = [], [process]
    while waiting:
        here = waiting.pop()
        mine = [child for child, parent in parents.items() if parent == here]
        found += mine
        waiting += mine
    return found


def _alive_after(processes, seconds=120):
    """How many are at work long after their parent was killed; they are ended then."""
    deadline = time.monotonic() + seconds
    while (alive := [p for p in processes if _at_work(p)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    for process in alive:
        os.kill(process, signal.SIGKILL)
    return len(alive)


def _at_work(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _plans(folder):
    small = ["--hidden", "4", "--patience", "1000", "--quiet", "--device", "cpu"]
    nodes = ["train", str(folder / "graph"), "--target", "label", *small]
    molecules = ["train", str(folder / "molecules.csv"), "--target", "logp", *small]
    edges = ["train", str(folder / "graph"), "--predict", "edges", "--target", "amount", *small]
    # Without a width, for then the regime of the network is chosen first.
    regime = ["train", str(folder / "graph"), "--target", "label", *small[2:]]
    resume = ["train", "--resume", "PLACE/run", "--quiet"]

    def training(name, command, share):
        return Plan(name, [*command, "--out", "PLACE/run"], resume, _run_files, share, _damaged_run)

    trained = folder / "trained"
    code = _finish(_fork([*molecules, "--epochs", "2", "--out", str(trained)]))
    assert code == 0, "the model that predicts could not be trained"
    predict = ["predict", str(trained), str(folder / "many.csv"), "--out", "PLACE/out.csv"]
    tune = ["tune", str(folder / "graph"), "--target", "label", "--trials", "3", "--layer", "conv"]
    tune += ["--epochs", "5", "--quiet", "--out", "PLACE/search"]
    fetch = ["EDGEWISE_CACHE=PLACE/cache", "datasets", "fetch", "all"]
    reproduce = ["reproduce", "--dataset", "freesolv", "--rows", "RF", "--runs", "2", "--jobs", "2"]
    reproduce += ["--results", "PLACE/results", "--quiet"]
    return [
        training("train nodes", [*nodes, "--epochs", "15"], 3),
        training("train molecules", [*molecules, "--epochs", "6"], 3),
        training("train ensemble", [*nodes, "--epochs", "6", "--ensemble", "3"], 3),
        training("train edges", [*edges, "--epochs", "6"], 2),
        training("train regime", [*regime, "--epochs", "6"], 2),
        training("train attention", [*nodes, "--epochs", "8", "--layer", "attention"], 3),
        Plan("predict", predict, predict, _table, 3, _damaged_table),
        Plan("tune", tune, tune, _search, 3, _damaged_search),
        Plan("fetch", fetch, fetch, _cache, 2, _damaged_cache),
        Plan("reproduce", reproduce, reproduce, _results, 0.7, _damaged_results, True),
    ]


def _write_data(folder):
    draw = random.Random(0)
    (folder / "graph").mkdir()
    nodes = [f"n{i},{draw.gauss(i % 2, 1):.3f},{'ab'[i % 2]}" for i in range(60)]
    pairs = {(i, (i + 2 * draw.randint(1, 9)) % 60) for i in range(60) for _ in range(3)}
    edges = [f"n{a},n{b},{draw.random():.3f}" for a, b in sorted(pairs)]
    (folder / "graph" / "nodes.csv").write_text("id,size,label\n" + "\n".join(nodes) + "\n")
    (folder / "graph" / "edges.csv").write_text("source,target,amount\n" + "\n".join(edges) + "\n")
    kinds = ("CCO", "CCN", "CCCl", "c1ccccc1", "CC(=O)O", "CCCC", "C1CCCCC1", "c1ccncc1", "CC#N")
    rows = [f"{'C' * draw.randint(0, 3)}{s},{len(s)}.5" for s in kinds * 6]
    (folder / "molecules.csv").write_text("smiles,logp\n" + "\n".join(rows) + "\n")
    many = [f"{'C' * (i % 40)}{kinds[i % 9]}" for i in range(2500)]
    (folder / "many.csv").write_text("smiles\n" + "\n".join(many) + "\n")


def _run_files(place):
    """Every file of a run but its report, with what differs between any two runs left out."""
    folder = place / "run"
    found = {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.is_file()}
    for name in ("report.html", "manifest.json", ".lock"):
        found.pop(name, None)
    metrics, recipe = (json.loads(found.pop(f"{n}.json")) for n in ("metrics", "recipe"))
    metrics.pop("seconds")
    from edgewise.training import load_model

    load_model(folder)  # by its checksums
    assert (folder / "report.html").read_text().rstrip().endswith("</html>")
    return found | {"metrics": metrics, "settings": recipe["settings"]}


def _damaged_run(place):
    """Files that are there but not whole, right after a kill."""
    from edgewise.runs import open_run

    folder, wrong = place / "run", []
    for path in folder.rglob("*") if folder.exists() else ():
        if path.name.startswith((".part-", ".lock")) or path.is_dir():
            continue
        if not _whole(path):
            wrong.append(path.name)
    if (folder / "metrics.json").exists():
        try:
            _ = open_run(folder).metrics
        except ValueError as error:
            wrong.append(str(error))
    return wrong


def _checksum(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _whole(path):
    data = path.read_bytes()
    if path.suffix == ".json":
        try:
            json.loads(data)
        except ValueError:
            return False
        return True
    if path.suffix == ".safetensors":
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        ends = [one["data_offsets"][1] for name, one in header.items() if name != "__metadata__"]
        return len(data) == 8 + size + max(ends, default=0)
    if path.suffix == ".html":
        return data.rstrip().endswith(b"</html>")
    return data.endswith(b"\n")


def _table(place):
    return {"out.csv": (place / "out.csv").read_bytes()}


def _damaged_table(place):
    path = place / "out.csv"
    if not path.exists():
        return []
    return [] if path.read_bytes().count(b"\n") == 2501 else ["out.csv"]


def _trials(place):
    path = place / "search" / "trials.csv"
    if not path.exists():
        return []
    with path.open(newline="") as stream:
        return [row for row in csv.DictReader(stream) if row["state"] != "interrupted"]


def _search(place):
    """What does not hang on which trial was killed: how many there are, and the preset's."""
    trials = _trials(place)
    preset = {k: v for k, v in trials[0].items() if k not in ("number", "seconds", "reason")}
    best = (place / "search" / "best.toml").read_text()
    assert "[model]" in best
    return {"trials": len(trials), "preset": preset}


def _damaged_search(place):
    """Trials that ended must never be forgotten."""
    folder = place / "search"
    if not folder.exists():
        return []
    seen = folder.parent / "seen.json"
    before = json.loads(seen.read_text()) if seen.exists() else []
    now = [row["number"] for row in _trials(place)]
    seen.write_text(json.dumps(now))
    wrong = [f"trial {number} is lost" for number in before if number not in now]
    if (folder / "study.json").exists() and not _whole(folder / "study.json"):
        wrong.append("study.json")
    return wrong


def _cache(place):
    folder = place / "cache"
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and ".part-" not in p.name]
    return {str(path.relative_to(folder)): _checksum(path) for path in files}


def _damaged_cache(place):
    known = _damaged_cache.known  # of the undisturbed run
    return [name for name, checksum in _cache(place).items() if known.get(name) != checksum]


_damaged_cache.known = {}


def _results(place):
    path = place / "results" / "reproduce-freesolv.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert (place / "results" / "index.html").exists()
    return {str(line["run"]): [line["validation"], line["test"]] for line in lines}


def _damaged_results(place):
    path = place / "results" / "reproduce-freesolv.jsonl"
    if not path.exists():
        return []
    *whole, _ = path.read_text().split("\n")  # the last line may be cut; the next run mends it
    wrong = []
    for line in whole:
        try:
            json.loads(line)
        except ValueError:
            wrong.append(line)
    return wrong


def _write(found):
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def _import_everything():
    """What the commands import on their way, and checkpoints that are often under way."""
    import pkgutil
    from importlib import import_module

    # Compiled kernels do not pay on small graphs. Plain ones multiply with MKL, which rounds by
    # where memory happens to lie unless it is told not to.
    os.environ.setdefault("EDGEWISE_KERNELS", "plain")
    os.environ.setdefault("MKL_CBWR", "COMPATIBLE")
    import edgewise

    for module in pkgutil.walk_packages(edgewise.__path__, "edgewise."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    for name in ("sklearn.metrics", "sklearn.decomposition", "torch._dynamo", "rdkit.Chem.Draw",
                 "rich.progress", "filelock", "sklearn.ensemble"):  # fmt: skip
        import_module(name)
    from edgewise.runs.checkpoint import train_run

    train_run.__defaults__ = (*train_run.__defaults__[:-1], 0.02)


if __name__ == "__main__":
    _import_everything()
    main()
