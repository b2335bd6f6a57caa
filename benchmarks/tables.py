"""Write the tables of README.md and of the pages in docs/ from the results.

    python benchmarks/tables.py
    python benchmarks/tables.py --check  # write nothing; fail where a table is not up to date

Each table stands between the lines `<!-- NAME -->` and `<!-- /NAME -->`. A test fails when the
documents and the results disagree. `make tables` also stages both for a commit.
"""

import argparse
import json
import re
from collections.abc import Mapping
from pathlib import Path

import choosing_regimes
import search_default
import search_nodes
import versus_chemprop
import versus_pyg
from readings import OURS, known

from edgewise.nn.network import VARIANTS
from edgewise.paper.networks import Size, count_networks
from edgewise.paper.output import all_tables, main_tables
from edgewise.paper.printed import CITATION
from edgewise.paper.result_store import ResultStore
from edgewise.paper.summary import summarise

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
# Kept, because the tests that compare documents with results must not need the data.
SIZES = RESULTS / "networks.json"
PAPER_TABLES = (
    "table-1", "table-2-fixed", "gains-fixed", "table-2-random", "gains-random", "table-3",
    "table-3-fixed",
)  # fmt: skip
NOT_RUN = "Not run yet."


def epoch_table() -> str:
    result = json.loads((RESULTS / "epoch.json").read_text())
    datasets = [name for name in ("cora", "pubmed") if name in result]
    lines = [
        "| milliseconds an epoch | " + " | ".join(datasets) + " |",
        "|---|" + "---:|" * len(datasets),
    ]
    for name in result[datasets[0]]["ms"]:
        ours = f"Edgewise {name}" if name in VARIANTS else name
        cells = [f"{result[dataset]['ms'][name]:.1f}" for dataset in datasets]
        lines.append(f"| {ours} | " + " | ".join(cells) + " |")
    for place, row in enumerate(result[datasets[0]]["ratios"]):
        ratios = (result[dataset]["ratios"][place] for dataset in datasets)
        cells = [f"{r['ratio']:.2f} (aim {r['aim']:.2f})" for r in ratios]
        lines.append(f"| {row['ours']} / {row['rival']} | " + " | ".join(cells) + " |")
    memory = [f"{result[dataset]['peak_gib_of_EGNN(A)']:.2f} GiB" for dataset in datasets]
    lines.append("| peak memory of EGNN(A), process included | " + " | ".join(memory) + " |")
    return "\n".join(lines)


def scaling_table() -> str:
    result = json.loads((RESULTS / "scaling.json").read_text())
    lines = [
        "| edges | EGNN(C) ms | of PyG GCN | GiB | EGNN(A) without adaptation ms | of PyG GAT | "
        "GiB | entries of E |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in result["rows"]:
        cells = [f"{row['edges']:,}"]
        for variant in ("EGNN(C)", "EGNN(A)-A"):
            ratios = [r for name, r in row.get("ratios", {}).items() if name.startswith(variant)]
            cells += [f"{row[variant]['ms']:.0f}", f"{ratios[0]:.2f}" if ratios else ""]
            cells.append(f"{row[variant]['gib']:.2f}")
        entries = row["formed"].get("formed_entries")
        cells.append(f"{entries:,}" if entries else "refused")
        lines.append(f"| {' | '.join(cells)} |")
    fits = result["exponents"]
    lines.append(
        f"| exponent | {fits['EGNN(C) ms']:.2f} | | {fits['EGNN(C) gib']:.2f} | "
        f"{fits['EGNN(A)-A ms']:.2f} | | {fits['EGNN(A)-A gib']:.2f} | {fits['entries of E']:.2f} |"
    )
    return "\n".join(lines)


def readings_table(runs: Path) -> str:
    """Mean and standard deviation of each reading over the seeds with which all its group ran."""
    groups: dict[tuple[str, str, str], dict[str, dict[int, dict[str, float]]]] = {}
    for job, line in known(runs).items():
        answers = groups.setdefault((job.dataset, job.row, job.split), {})
        answers.setdefault(job.answer, {})[job.seed] = line
    lines = [
        "| data | row | split | reading | runs | validation | test |",
        "|---|---|---|---|---:|---:|---:|",
    ]
    for (dataset, row, split), answers in sorted(groups.items()):
        seeds = sorted(set.intersection(*(set(lines) for lines in answers.values())))
        for answer in sorted(answers, key=lambda answer: (answer != OURS, answer)):
            cells = [_mean_and_std(dataset, [answers[answer][s][part] for s in seeds])
                     for part in ("validation", "test")]  # fmt: skip
            name = f"**{answer}**" if answer == OURS else answer
            lines.append(
                f"| {dataset} | {row} | {split} | {name} | {len(seeds)} | {' | '.join(cells)} |"
            )
    return "\n".join(lines)


def _mean_and_std(dataset: str, scores: list[float]) -> str:
    found = summarise(scores)
    scale, digits = (100, 1) if dataset in CITATION else (1, 3)
    mean, std = (f"{scale * value:.{digits}f}" for value in (found.mean, found.std))
    if found.runs > 1:
        return f"{mean} ± {std}"
    return mean if found.runs else "none"


def attack_table() -> str:
    if not (RESULTS / "attack.json").exists():
        return NOT_RUN
    result = json.loads((RESULTS / "attack.json").read_text())
    columns = ("kills", "lost", "different", "half_written", "orphans")
    kills = result.get("kills", {})
    total = {name: sum(row[name] for row in kills.values()) for name in columns}
    lines = [
        "| command | kills | lost | different | half-written | orphans |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, row in {**kills, "all": total}.items():
        lines.append(f"| {name} | " + " | ".join(f"{row[column]:,}" for column in columns) + " |")
    fuzz = result.get("fuzz")
    if fuzz:
        failed = "none" if not fuzz["failures"] else "some"
        again = len(fuzz.get("repeated", ()))
        repeated = f" ({again} of them once more, after a mend)" if again else ""
        lines += [
            "",
            f"{fuzz['cases']:,} damaged files were read{repeated}; {failed} ended neither in "
            "success nor in one sentence.",
        ]
    return "\n".join(lines)


def gated_table() -> str:
    result = json.loads((RESULTS / "gated_speed.json").read_text())
    lines = ["| normalisation | part | ours / PyG | cold | aim |", "|---|---|---:|---:|---:|"]
    for name, ratio in result["ratios"].items():
        normalize, part = name.split(", ")
        cold = result["ratios when cold"][name]
        lines.append(f"| {normalize} | {part} | {ratio:.2f} | {cold:.2f} | {result['aim']:.2f} |")
    return "\n".join(lines)


def network_sizes() -> dict[str, Size]:
    """The sizes of the citation networks as they were last counted."""
    return {name: tuple(size) for name, size in json.loads(SIZES.read_text()).items()}


def count_again() -> None:
    """Count the networks that are available here, and keep what is known of the others."""
    sizes = network_sizes() | count_networks().sizes
    lines = (f"  {json.dumps(name)}: {json.dumps(size)}" for name, size in sizes.items())
    SIZES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def documents(runs: Path) -> dict[Path, dict[str, str]]:
    """For each document the tables in it, by name.

    Args:
        runs: The folder with the results of `edgewise reproduce`.
    """
    results = ResultStore(runs)
    known_tables = {table.name: table.markdown() for table in all_tables(results, network_sizes())}
    short = "\n\n".join(table.markdown() for table in main_tables(results))
    return {
        ROOT / "README.md": {
            "paper": short or NOT_RUN,
            "epoch": epoch_table(),
            "scaling": scaling_table(),
        },
        ROOT / "docs" / "reproduction.md": {
            **{name: known_tables.get(name, NOT_RUN) for name in PAPER_TABLES},
            "readings": readings_table(runs),
        },
        ROOT / "docs" / "reliability.md": {"attack": attack_table()},
        ROOT / "docs" / "defaults.md": {
            "versus-chemprop": versus_chemprop.table(runs / "versus_chemprop.jsonl"),
            "search": search_default.known_table(runs / "search_default.jsonl"),
            "choosing-regimes": choosing_regimes.table(runs / "choosing_regimes.jsonl"),
            "search-nodes": search_nodes.table(search_nodes.lines(runs / "search_nodes.jsonl")),
            "versus-pyg": versus_pyg.table(versus_pyg.lines(runs / "versus_pyg.jsonl")),
            "gated-speed": gated_table(),
        },
    }


def with_tables(path: Path, tables: Mapping[str, str]) -> str:
    """The text of a document with every table as the results have it."""
    text = path.read_text()
    for name, table in tables.items():
        block = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
        text, count = block.subn(lambda m, t=table: m[1] + t + m[2], text)
        if count != 1:
            raise SystemExit(f"{path} has {count} blocks named {name}, expected one")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail where stale")
    parser.add_argument("--runs", type=Path, default=RESULTS, help="folder of the paper's runs")
    args = parser.parse_args()
    if not args.check:
        count_again()
    for path, tables in documents(args.runs).items():
        text = with_tables(path, tables)
        if args.check and text != path.read_text():
            raise SystemExit(f"{path} does not show the results; run: make tables")
        if not args.check:
            path.write_text(text)


if __name__ == "__main__":
    main()
