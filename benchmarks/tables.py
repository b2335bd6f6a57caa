"""Write the benchmark tables of the README from benchmarks/results/*.json.

    python benchmarks/tables.py

Each table stands between the lines `<!-- NAME -->` and `<!-- /NAME -->`. A test fails when the
README and the results disagree.
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"


def epoch_table() -> str:
    result = json.loads((RESULTS / "epoch.json").read_text())
    datasets = [name for name in ("cora", "pubmed") if name in result]
    lines = [
        "| milliseconds an epoch | " + " | ".join(datasets) + " |",
        "|---|" + "---:|" * len(datasets),
    ]
    for name in result[datasets[0]]["ms"]:
        ours = name if name.startswith("PyG") else f"Edgewise {name}"
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
        "| edges | EGNN(C) ms | GiB | EGNN(A) without adaptation ms | GiB | entries of E, formed |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for row in result["rows"]:
        conv, attention = row["EGNN(C)"], row["EGNN(A)-A"]
        entries = row["formed"].get("formed_entries")
        lines.append(
            f"| {row['edges']:,} | {conv['ms']:.0f} | {conv['gib']:.2f} | {attention['ms']:.0f} | "
            f"{attention['gib']:.2f} | {f'{entries:,}' if entries else 'refused'} |"
        )
    fits = result["exponents"]
    lines.append(
        f"| exponent | {fits['EGNN(C) ms']:.2f} | {fits['EGNN(C) gib']:.2f} | "
        f"{fits['EGNN(A)-A ms']:.2f} | {fits['EGNN(A)-A gib']:.2f} | {fits['entries of E']:.2f} |"
    )
    return "\n".join(lines)


def with_tables(readme: str) -> str:
    """The README with every table as the results have it."""
    for name, table in (("epoch", epoch_table()), ("scaling", scaling_table())):
        block = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
        readme, count = block.subn(lambda m, t=table: m[1] + t + m[2], readme)
        if count != 1:
            raise SystemExit(f"README.md has {count} blocks named {name}, expected one")
    return readme


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(with_tables(path.read_text()))
