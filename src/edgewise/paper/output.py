"""Write what is known: a page, tables as Markdown and CSV, and Figure 2."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from edgewise.core.files import write_atomically
from edgewise.paper.class_balance import write_class_balance
from edgewise.paper.experiments import PROTOCOLS
from edgewise.paper.networks import Networks, Size
from edgewise.paper.page import reproduction_page
from edgewise.paper.printed import CITATION, MOLECULES
from edgewise.paper.result_store import ResultStore
from edgewise.paper.tables import PaperTable, comparisons, table_1, table_2, table_3

MAIN_ROWS = ("GCN", "GAT", "EGNN(C)", "EGNN(A)")


def all_tables(results: ResultStore, sizes: Mapping[str, Size]) -> list[PaperTable]:
    """Every table of which something is known."""
    tables = [table_1(sizes)] if sizes else []
    for protocol in PROTOCOLS:
        datasets = _known(results, CITATION, protocol)
        if datasets:
            tables += [
                table_2(results, protocol, datasets),
                comparisons(results, protocol, datasets),
            ]
    for protocol in reversed(PROTOCOLS):  # as we read the paper first
        molecules = _known(results, MOLECULES, protocol)
        if molecules:
            tables.append(table_3(results, molecules, protocol))
    return tables


def main_tables(results: ResultStore) -> list[PaperTable]:
    """Baselines and full models alone, as the paper ran them, where something is known."""
    networks, molecules = _known(results, CITATION, "fixed"), _known(results, MOLECULES, "random")
    tables = [table_2(results, "fixed", networks, MAIN_ROWS)] if networks else []
    return [*tables, table_3(results, molecules)] if molecules else tables


def _known(results: ResultStore, datasets: Sequence[str], protocol: str) -> list[str]:
    known = {(e.dataset, e.protocol) for e in results.lines}
    return [dataset for dataset in datasets if (dataset, protocol) in known]


def write_output(
    results: ResultStore, networks: Networks, tables: Sequence[PaperTable], folder: Path
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
        write_class_balance(networks.training_classes, paths[-1])
    return paths
