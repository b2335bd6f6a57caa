"""Small valid files of every kind that is read, and how each is read."""

from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet

import edgewise as ew
from edgewise import runs
from edgewise.cli.flags import chosen
from edgewise.core.manifest import MANIFEST, write_manifest
from edgewise.core.presets import make_settings
from edgewise.data.featurizers import load_featurizer
from edgewise.data.graph_files import load_graph, save_graph
from edgewise.data.graph_reader import load_graph_reader
from edgewise.data.graph_set_reader import load_graph_set_reader
from edgewise.data.sources import find_source
from edgewise.data.splits import load_split
from edgewise.data.streams import stream_table
from edgewise.paper.result_store import ResultStore
from edgewise.report import RunResults
from edgewise.runs.checkpoint import _train_member, checkpoint_path
from edgewise.training import Fitting, load_model, make_trainer
from edgewise.tuning.search import Search
from edgewise.tuning.study import quiet_optuna
from edgewise.units.base import resolve

SMILES = (
    *("CCO", "CCN", "CCCl", "c1ccccc1", "CC(=O)O", "CCCC", "C1CCCCC1", "c1ccncc1", "CC#N", "CBr"),
)
SMALL = {"hidden": 2, "epochs": 2, "patience": 2}


@dataclass(frozen=True)
class Target:
    """A file that is damaged, and what reads it."""

    name: str
    path: Path
    read: Any  # a function without arguments
    text: bool = True
    sealed: bool = False  # whether a manifest holds its checksum


def write_samples(folder):
    """Valid files; training takes two epochs."""
    folder.mkdir(parents=True, exist_ok=True)
    colours = ("red", "blue", "green")
    nodes = "id,size,label,colour,about\n"
    edges = "source,target,amount,kind\n"
    for i in range(20):
        nodes += f"n{i},{i % 7 - 3}.5,{'ab'[i % 2]} é,{colours[i % 3]},some words of row {i % 4}\n"
        for step in (1, 2):
            edges += f"n{i},n{(i + step) % 20},{step}.25,{'uv'[step % 2]}\n"
    for name, mark, ending in (("graph", ",", "csv"), ("graph-tsv", "\t", "tsv")):
        (folder / name).mkdir()
        for table, text in (("nodes", nodes), ("edges", edges)):
            (folder / name / f"{table}.{ending}").write_text(text.replace(",", mark), "utf-8")
    ew.import_graph(folder / "graph", folder / "store", target="label")
    edges = {"predict": "edges", "target": "kind"}
    ew.import_graph(folder / "graph", folder / "edge-store", **edges)
    lines = [f'm{i},{s},{len(s)}.5,{i % 2},"a, b"' for i, s in enumerate(SMILES * 2)]
    (folder / "molecules.csv").write_text("name,smiles,logp,ring,note\n" + "\n".join(lines) + "\n")
    columns = {"smiles": SMILES * 2, "logp": [len(s) + 0.5 for s in SMILES * 2]}
    parquet.write_table(pa.table(columns), folder / "molecules.parquet", compression="none")
    parquet.write_table(pa.table(columns), folder / "packed.parquet")
    _write_sdf(folder / "molecules.sdf")
    _write_graphml(folder / "graph.graphml")
    _write_graphs(folder)
    draw = np.random.default_rng(0)
    graph = ew.Graph(
        x=torch.from_numpy(draw.normal(size=(12, 3)).astype(np.float32)),
        edge_index=torch.tensor([[i for i in range(12)], [(i + 1) % 12 for i in range(12)]]),
        edge_attr=torch.ones(12, 2),
        y=torch.tensor([i % 2 for i in range(12)]),
    )
    save_graph(graph, folder / "graph.safetensors")
    (folder / "splits.json").write_text('{"train": [0, 1, 2], "validation": [3], "test": [4, 5]}')
    (folder / "config.toml").write_text(
        'preset = "paper"\n[data]\ntarget = ["label"]\n[model]\nhidden = 8\ndropout = 0.5\n'
        "directed = false\n[training]\nepochs = 10\nseed = 3\n"
    )
    (folder / "reproduce-cora.jsonl").write_text(_result_lines())
    with patch.object(import_module("edgewise.runs.train"), "write_report", lambda *_: None):
        runs.train(str(folder / "graph"), folder / "nodes", target="label", ensemble=2, **SMALL)
        runs.train(str(folder / "molecules.csv"), folder / "run", target="logp", **SMALL)
        runs.train(str(folder / "graphs"), folder / "whole", target="size", **SMALL)
        half = iter((False, True))
        unfinished = {"epochs": 9, "stop": lambda: next(half, True)}
        runs.train(str(folder / "graph"), folder / "half", target="label", hidden=2, **unfinished)
    (folder / "half" / "metrics.json").unlink()
    ew.MoleculeRegressor(**SMALL).fit(list(SMILES), range(len(SMILES))).save(folder / "estimator")
    ew.MoleculeClassifier(**SMALL).fit(list(SMILES), ["x", "y"] * 5).save(folder / "classifier")
    _search(folder).run_trial(lambda *_: None, lambda: False, 1)


def _write_sdf(path):
    from rdkit import Chem

    with Chem.SDWriter(str(path)) as writer:
        for smiles in SMILES:
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetProp("logp", f"{len(smiles)}.5")
            molecule.SetProp("note", "a b")
            writer.write(molecule)


def _write_graphml(path):
    import networkx

    graph = networkx.DiGraph()
    for i in range(12):
        graph.add_node(f"n{i}", size=float(i), label="ab"[i % 2])
    for i in range(12):
        graph.add_edge(f"n{i}", f"n{(i + 1) % 12}", weight=1.5)
    networkx.write_graphml(graph, path)


def _write_graphs(folder):
    """Twelve rings in three tables, as a TUDataset, and as GraphML files."""
    import networkx

    for name in ("graphs", "tu", "graphml"):
        (folder / name).mkdir()
    graphs, nodes, edges = "graph,size,kind\n", "graph,id,mass,colour\n", ""
    pairs, indicator, first = "", "", 1
    for g in range(12):
        size = 3 + g % 4
        graphs += f"g{g},{size}.5,{'ab'[g % 2]}\n"
        ring = networkx.cycle_graph(size, networkx.DiGraph)
        ring.graph["size"] = size + 0.5
        for i in range(size):
            nodes += f"g{g},{i},{i}.5,{'uv'[i % 2]}\n"
            edges += f"g{g},{i},{(i + 1) % size},0.5,{'xy'[i % 2]}\n"
            a, b = first + i, first + (i + 1) % size
            pairs += f"{a}, {b}\n{b}, {a}\n"
            indicator += f"{g + 1}\n"
            ring.nodes[i]["mass"] = i + 0.5
        first += size
        networkx.write_graphml(ring, folder / "graphml" / f"g{g}.graphml")
    for name, text in (("graphs", graphs), ("nodes", nodes)):
        (folder / "graphs" / f"{name}.csv").write_text(text)
    (folder / "graphs" / "edges.csv").write_text("graph,source,target,amount,type\n" + edges)
    labels = "".join(f"{g % 2}\n" for g in range(12))
    texts = {"A": pairs, "graph_indicator": indicator, "graph_labels": labels}
    texts["node_labels"] = "".join(f"{i % 3}\n" for i in range(first - 1))
    texts["node_attributes"] = "".join(f"{i}.5, {i % 2}\n" for i in range(first - 1))
    for name, text in texts.items():
        (folder / "tu" / f"T_{name}.txt").write_text(text)


def _result_lines():
    import json

    from edgewise.paper.experiments import Experiment

    lines = []
    for run in range(3):
        one = Experiment("cora", "sparse", "fixed", "GCN", run)
        scores = {"validation": 0.5, "test": 0.25, "epochs": 3, "seconds": 1.5}
        lines.append(json.dumps({**vars(one), "settings": one.marks[0], **scores}))
    return "\n".join(lines) + "\n"


def _search(folder):
    source = find_source([str(folder / "graph")])
    unit, base = resolve(source, "default", {"target": "label", "layer": "conv", **SMALL})
    place = folder / "search"
    place.mkdir(exist_ok=True)
    with quiet_optuna():
        problem = unit.open(source, base).problem
        return Search(place, source, base, ("layer", *SMALL), 1, problem)


def _opened(*places, **given):
    source = find_source([str(place) for place in places])
    unit, settings = resolve(source, "default", given, certain=False)
    return unit.open(source, settings)


def _streamed(path):
    return [len(stretch.table) for stretch in stream_table(path)]


def _run_read(folder):
    """All that later commands read of a run."""
    run = runs.open_run(folder)
    _ = run.finished
    model = load_model(folder)
    runs.reopen(run)
    RunResults.from_folder(run, model.task)
    runs.compare([folder])
    return model


def _checkpoint(folder):
    run = runs.open_run(folder)
    assert checkpoint_path(run, 0).exists()
    fitting = Fitting(make_trainer(runs.reopen(run).problem, 0))
    _train_member(run, fitting, None, lambda: True, 1e9)


def _configured(path):
    wanted = chosen(None, str(path), {})
    return make_settings("node", wanted.preset, **wanted.named)


def _estimated(folder, kind):
    return kind.load(folder).predict(["CCO"])


def targets(folder):
    """Every kind of file that is read, in a folder of :func:`write_samples`."""
    graph, tsv = folder / "graph", folder / "graph-tsv"
    found = [
        Target("nodes.csv", graph / "nodes.csv", partial(_opened, graph, target="label")),
        Target("edges.csv", graph / "edges.csv", partial(_opened, graph, target="label")),
        Target(
            "nodes.tsv",
            tsv / "nodes.tsv",
            partial(_opened, tsv / "nodes.tsv", tsv / "edges.tsv", target="label"),
        ),
        *(
            Target(f"graphs/{name}", folder / "graphs" / name, whole)
            for whole in (partial(_opened, folder / "graphs", target="size"),)
            for name in ("graphs.csv", "nodes.csv", "edges.csv")
        ),
        *(
            Target(f"store/{name}", folder / "store" / name, whole, text=name == MANIFEST)
            for whole in (partial(_opened, folder / "store"),)
            for name in (MANIFEST, "x.npy", "out_start.npy", "target.npy", "nodes.parquet")
        ),
        *(
            Target(f"edge-store/{name}", folder / "edge-store" / name, whole, text=name == MANIFEST)
            for whole in (partial(_opened, folder / "edge-store"),)
            for name in (MANIFEST, "row.npy", "edge_index.npy", "pair_start.npy", "edges.parquet")
        ),
        *(
            Target(f"tu/{name}", folder / "tu" / f"T_{name}.txt", partial(_opened, folder / "tu"))
            for name in ("A", "graph_indicator", "graph_labels", "node_labels", "node_attributes")
        ),
        Target(
            "graphml/g3.graphml",
            folder / "graphml" / "g3.graphml",
            partial(_opened, folder / "graphml", target="size"),
        ),
        Target("results.jsonl", folder / "reproduce-cora.jsonl", partial(ResultStore, folder)),
    ]
    for name, text, readers in (
        ("molecules.csv", True, (partial(_opened, target="logp"), _streamed)),
        ("molecules.sdf", True, (partial(_opened, target="logp"), _streamed)),
        ("molecules.parquet", False, (partial(_opened, target="logp"), _streamed)),
        ("packed.parquet", False, (partial(_opened, target="logp"), _streamed)),
        ("graph.graphml", True, (partial(_opened, target="label"),)),
        ("graph.safetensors", False, (_opened, load_graph)),
        ("splits.json", True, (load_split,)),
        ("config.toml", True, (_configured,)),
    ):
        path = folder / name
        for number, read in enumerate(readers):
            again = " again" * number  # by another reader
            found.append(Target(f"{name}{again}", path, partial(read, path), text))
    for run, encoder, load in (
        ("nodes", "reader.json", load_graph_reader),
        ("run", "featurizer.json", load_featurizer),
        ("whole", "reader.json", load_graph_set_reader),
    ):
        place = folder / run
        tables = ("history.csv", "predictions.csv")
        for name in ("recipe.json", "metrics.json", "model.json", "splits.json", *tables, encoder):
            read = partial(_run_read, place)
            found.append(Target(f"{run}/{name}", place / name, read, sealed=True))
        found += [
            Target(f"{run}/{MANIFEST}", place / MANIFEST, partial(_run_read, place)),
            Target(
                f"{run}/model.safetensors",
                place / "model.safetensors",
                partial(load_model, place),
                text=False,
                sealed=True,
            ),
            Target(
                f"{run}/{encoder} in use",
                place / encoder,
                partial(runs.predict, place, (), folder / "out.csv"),
                sealed=True,
            ),
            Target(f"{encoder} alone", place / encoder, partial(load, place / encoder)),
        ]
    regressor, classifier = folder / "estimator", folder / "classifier"
    regress = partial(_estimated, regressor, ew.MoleculeRegressor)
    classify = partial(_estimated, classifier, ew.MoleculeClassifier)
    member = folder / "half" / "checkpoint" / "member-0.safetensors"
    return [
        *found,
        Target("checkpoint", member, partial(_checkpoint, folder / "half"), text=False),
        Target("study.json", folder / "search" / "study.json", partial(_search, folder)),
        Target("journal.jsonl", folder / "search" / "journal.jsonl", partial(_search, folder)),
        Target("estimator.json", regressor / "estimator.json", regress),
        Target("classifier.json", classifier / "estimator.json", classify),
        Target("estimator model.json", classifier / "model.json", classify, sealed=True),
    ]


def reseal(path):
    """Rewrite the checksum of a changed file, as somebody who tampers would."""
    write_manifest(path.parent, [path.name])
