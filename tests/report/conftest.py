"""One run of each kind of task, with its report."""

import pytest
from small_runs import KINDS, made, make_edges, make_links, make_molecules, make_nodes

from edgewise.runs.report import write_report


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """One run of each kind, with the report that follows its training."""
    root = tmp_path_factory.mktemp("runs")
    found = {"nodes": made(root / "nodes", make_nodes(root / "graph"), command="a <command>")}
    places = make_edges(root / "ends")
    found["edges"] = made(root / "edges", places, unit="edge", label_messages=True)
    links = {"predict": "links", "target": ("<kind>",), "time_column": "when"}
    found["links"] = made(root / "links", make_links(root / "pairs"), unit="link", **links)
    for kind in KINDS[3:]:
        places = make_molecules(root / f"{kind}-data", kind)
        target = ("a",) if kind == "classification" else ("a", "b<")
        members = 2 if kind == "regression" else 1
        found[kind] = made(
            root / kind, places, target=target, split="0.5,0.25,0.25", ensemble=members
        )
    for run, opened, trained in found.values():
        write_report(run, opened, trained)
    return {name: run for name, (run, *_) in found.items()}
