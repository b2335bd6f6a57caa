"""Small tables whose edges have labels."""

import numpy as np

ACCOUNTS, PAYMENTS = 14, 160


def payments(folder, *, seed=0, nodes=True, change=lambda table: None):
    """Payments between accounts: large ones of one kind are fraud; several join the same two.

    Args:
        folder: Where ``edges.csv`` and, with ``nodes``, ``nodes.csv`` are written.
        seed: Of the draw.
        nodes: Whether accounts have a table.
        change: Called with the columns of the edges, to change some before they are written.

    Returns:
        The files as arguments of a command.
    """
    generator = np.random.default_rng(seed)
    amount = generator.uniform(1, 9, PAYMENTS).round(2)
    kind = generator.choice(["card", "cash"], PAYMENTS)
    fraud = ((amount > 5) & (kind == "card")).astype(int)
    table = {
        "source": [f"a{i}" for i in generator.integers(ACCOUNTS, size=PAYMENTS)],
        "target": [f"a{i}" for i in generator.integers(ACCOUNTS, size=PAYMENTS)],
        "amount": amount.tolist(),
        "kind": kind.tolist(),
        "when": generator.integers(40, size=PAYMENTS).tolist(),
        "fraud": fraud.tolist(),
        "loss": (amount * fraud + generator.normal(0, 0.1, PAYMENTS)).round(3).tolist(),
        "review": generator.choice(["ok", "odd", "bad"], PAYMENTS).tolist(),
        "part": generator.choice(
            ["train", "validation", "test"], PAYMENTS, p=(0.6, 0.2, 0.2)
        ).tolist(),
    }
    change(table)
    folder.mkdir(exist_ok=True, parents=True)
    written(folder / "edges.csv", table)
    if not nodes:
        return [str(folder / "edges.csv")]
    age = generator.integers(1, 30, ACCOUNTS).tolist()
    written(folder / "nodes.csv", {"id": [f"a{i}" for i in range(ACCOUNTS)], "age": age})
    return [str(folder / "nodes.csv"), str(folder / "edges.csv")]


def written(path, table):
    lines = [
        ",".join(table),
        *(",".join(map(str, row)) for row in zip(*table.values(), strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n")


# Labels of one kind must not be learnt as features of another.
QUICK = {"epochs": 2, "hidden": 8, "seed": 3}
TARGETS = {
    "fraud": {"target": ["fraud"], "ignore": ["loss", "review", "part", "when"]},
    "loss": {"target": ["loss"], "ignore": ["fraud", "review", "part", "when"]},
    "review": {"target": ["review"], "ignore": ["fraud", "loss", "part", "when"]},
}


def without(names, *left_out):
    return [name for name in names if name not in left_out]
