"""Runs of a few epochs on data with hostile names, for the tests of the report."""

import csv

from edgewise.data.sources import find_source
from edgewise.runs.checkpoint import train_run
from edgewise.runs.folder import start_run
from edgewise.units.base import resolve

HOSTILE = ("<script>alert(1)</script>", "\"' onload=alert(1) & $x_ <b>", "_hidden\x01 名前")
SMILES = [
    "CCO", "CCN", "CCC", "CCCl", "CC(=O)O", "c1ccccc1", "c1ccccc1O", "c1ccncc1", "CC(C)O", "CCCC",
    "CCS", "COC", "CC#N", "C1CCCCC1", "CCBr", "CC(N)=O", "OCCO", "c1ccsc1", "CCF", "CNC", "CC=O",
    "CCCO", "CCCN", "C1CC1",
]  # fmt: skip
KINDS = ("nodes", "edges", "links", "classification", "multilabel", "regression")


def write_csv(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    return str(path)


def made(folder, places, *, stop=lambda: False, command="edgewise train", unit="", **settings):
    """A run of a few epochs, its data, and what training gave."""
    source = find_source(places, unit)
    unit, resolved = resolve(source, "default", {"epochs": 3, "hidden": 3, "seed": 1, **settings})
    opened = unit.open(source, resolved)
    run = start_run(folder, source, opened.problem.settings, "default", command)
    return run, opened, train_run(run, opened, stop=stop)


def make_nodes(folder):
    """Thirty nodes in a ring, of three classes with hostile names."""
    folder.mkdir()
    nodes = [(f"<i>{i}</i>", i % 3 + 0.1 * (i % 7), HOSTILE[i % 3]) for i in range(30)]
    write_csv(folder / "nodes.csv", ("id", "size", "label"), nodes)
    edges = [(f"<i>{i}</i>", f"<i>{(i + 3) % 30}</i>") for i in range(30)]
    write_csv(folder / "edges.csv", ("source", "target"), edges)
    return [str(folder)]


def make_edges(folder):
    """Forty edges between ten nodes with hostile names, of three classes."""
    folder.mkdir()
    name = [f"<i>{i}</i>{HOSTILE[i % 3]}" for i in range(10)]
    rows = [(name[i % 10], name[i * 7 % 9], i % 5, HOSTILE[i % 3]) for i in range(40)]
    header = ("source", "target", "amount", "label")
    return [write_csv(folder / "edges.csv", header, rows)]


def make_links(folder):
    """Sixty links between twelve nodes with hostile names, of three types, in the order of time."""
    folder.mkdir()
    name = [f"<i>{i}</i>{HOSTILE[i % 3]}" for i in range(12)]
    pairs = [(name[i], name[(i + step) % 12]) for step in (1, 2, 5, 7, 9) for i in range(12)]
    rows = [(*pair, HOSTILE[i % 3], 1e9 + 86400 * i) for i, pair in enumerate(pairs)]
    return [write_csv(folder / "edges.csv", ("source", "target", "<kind>", "when"), rows)]


def make_molecules(folder, kind):
    """Molecules with targets of that kind, some of them unknown."""
    folder.mkdir()
    columns = {
        "classification": [(HOSTILE[i % 2],) for i in range(24)],
        "multilabel": [(i % 2, "" if i % 5 == 0 else (i // 2) % 2) for i in range(24)],
        "regression": [(len(s) / 3, "" if i % 6 == 0 else i) for i, s in enumerate(SMILES)],
    }[kind]
    header = ("smiles", "a", "b<")[: 1 + len(columns[0])]
    rows = [(smiles, *cells) for smiles, cells in zip(SMILES, columns, strict=True)]
    return [write_csv(folder / "molecules.csv", header, rows)]


def page(run):
    return (run.folder / "report.html").read_text(encoding="utf-8")
