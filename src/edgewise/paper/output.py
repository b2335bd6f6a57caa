"""Write the tables of what is known: Markdown, CSV, and to the terminal."""

from collections.abc import Callable
from pathlib import Path

from edgewise.files import write_atomically
from edgewise.paper.printed import CITATION, MOLECULES
from edgewise.paper.results import Results
from edgewise.paper.tables import Table, comparisons, table_1, table_2, table_3


def all_tables(results: Results) -> list[Table]:
    """Every table of which something is known."""
    known = {(e.dataset, e.protocol) for e in results.lines}
    tables = [table_1()]
    for protocol in ("fixed", "random"):
        datasets = [d for d in CITATION if (d, protocol) in known]
        if datasets:
            tables += [
                table_2(results, protocol, datasets),
                comparisons(results, protocol, datasets),
            ]
    if any((d, "random") in known for d in MOLECULES):
        tables.append(table_3(results))
    return tables


def write_tables(results: Results, folder: Path, tell: Callable[[str], None]) -> list[Path]:
    """Write all tables into a folder, and tell them; gives the files."""
    tables = all_tables(results)
    for table in tables:
        tell(f"\n{table.markdown()}")
    paths = [folder / "tables.md", *(folder / f"{table.name}.csv" for table in tables)]
    write_atomically(paths[0], "\n\n".join(table.markdown() for table in tables) + "\n")
    for path, table in zip(paths[1:], tables, strict=True):
        write_atomically(path, table.csv())
    return paths
