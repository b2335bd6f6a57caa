"""Write what is known: a page, tables as Markdown and CSV, and Figure 2."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from edgewise.core.files import write_atomically
from edgewise.paper.experiments import PROTOCOLS
from edgewise.paper.networks import Networks, Size
from edgewise.paper.page import reproduction_page
from edgewise.paper.printed import CITATION, MOLECULES, TITLES
from edgewise.paper.results import Results
from edgewise.paper.tables import Table, comparisons, table_1, table_2, table_3
from edgewise.plots import draw_class_distributions

MAIN_ROWS = ("GCN", "GAT", "EGNN(C)", "EGNN(A)")


def all_tables(results: Results, sizes: Mapping[str, Size]) -> list[Table]:
    """Every table of which something is known."""
    tables = [table_1(sizes)] if sizes else []
    for protocol in PROTOCOLS:
        datasets = _known(results, CITATION, protocol)
        if datasets:
            tables += [
                table_2(results, protocol, datasets),
                comparisons(results, protocol, datasets),
            ]
    molecules = _known(results, MOLECULES, "random")
    return [*tables, table_3(results, molecules)] if molecules else tables


def main_tables(results: Results) -> list[Table]:
    """Baselines and full models alone, as the paper ran them, where something is known."""
    networks, molecules = _known(results, CITATION, "fixed"), _known(results, MOLECULES, "random")
    tables = [table_2(results, "fixed", networks, MAIN_ROWS)] if networks else []
    return [*tables, table_3(results, molecules)] if molecules else tables


def _known(results: Results, datasets: Sequence[str], protocol: str) -> list[str]:
    known = {(e.dataset, e.protocol) for e in results.lines}
    return [dataset for dataset in datasets if (dataset, protocol) in known]


def write_output(
    results: Results, networks: Networks, tables: Sequence[Table], folder: Path
) -> list[Path]:
    """Write everything into a folder; gives the files, what to look at first in front."""
    contents = {
        "index.html": reproduction_page(results, networks, tables),
        "tables.md": "\n\n".join(table.markdown() for table in tables) + "\n",
        **{f"{table.name}.csv": table.csv() for table in tables},
    }
    for name, text in contents.items():
        write_atomically(folder / name, text)
    paths = [folder / name for name in contents]
    if networks.training_classes:
        paths.append(folder / "figure-2.svg")
        counts = {TITLES[name]: classes for name, classes in networks.training_classes.items()}
        draw_class_distributions(counts, paths[-1])
    return paths
