"""What the paper printed: Table 1 (the networks), Table 2 (nodes), Table 3 (molecules)."""

from typing import NamedTuple


class Printed(NamedTuple):
    """A mean and a standard deviation, as printed."""

    mean: float
    std: float


CITATION = ("cora", "citeseer", "pubmed")
SPLITS = ("sparse", "dense")
MOLECULES = ("tox21", "lipo", "freesolv")
TITLES = {
    **{"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"},
    **{"tox21": "Tox21", "lipo": "Lipophilicity", "freesolv": "FreeSolv"},
}

# Nodes, edges, features, classes. The paper gives CiteSeer the features of Cora, and PubMed those
# of CiteSeer.
TABLE_1 = {
    "cora": (2708, 5429, 1433, 7),
    "citeseer": (3327, 4732, 1433, 6),
    "pubmed": (19717, 44338, 3703, 3),
}

# Accuracy in percent: Cora sparse and dense, CiteSeer sparse and dense, PubMed sparse and dense.
_TABLE_2 = """
GCN          72.9 0.8  72.0 1.2  69.2 0.7  75.3 0.4  83.3 0.4  83.4 0.2
GAT          75.5 1.1  79.0 1.0  69.5 0.5  74.9 0.5  83.4 0.1  83.4 0.2
GCN*         82.7 0.6  87.6 0.6  69.3 0.6  76.0 0.5  84.5 0.2  84.3 0.4
GAT*         82.7 0.6  86.6 0.6  69.4 0.5  74.9 0.8  83.1 0.2  82.7 0.2
EGNN(C)-M    81.8 0.5  85.1 0.5  70.6 0.3  75.0 0.3  84.3 0.1  84.1 0.1
EGNN(C)-D    80.2 0.4  86.1 0.5  69.4 0.3  76.8 0.4  86.2 0.2  86.7 0.1
EGNN(C)      83.0 0.3  88.8 0.3  69.5 0.3  76.7 0.4  86.0 0.1  86.0 0.1
EGNN(A)-D-M  76.0 1.0  79.1 1.0  69.5 0.4  74.6 0.3  83.4 0.1  83.6 0.2
EGNN(A)-A-M  80.1 1.0  85.4 0.5  70.1 0.4  74.7 0.4  84.3 0.2  84.2 0.1
EGNN(A)-A-D  81.7 0.4  87.9 0.4  69.4 0.3  75.7 0.3  85.5 0.1  86.0 0.1
EGNN(A)      82.5 0.3  88.4 0.3  69.4 0.4  76.5 0.3  85.7 0.1  86.7 0.1
EGNN(C)-M*   83.2 0.3  87.4 0.4  70.3 0.3  75.4 0.5  84.1 0.1  84.1 0.1
EGNN(C)-D*   82.3 0.4  87.2 0.4  69.4 0.3  77.1 0.4  86.2 0.1  86.4 0.3
EGNN(C)*     83.4 0.3  88.5 0.4  69.5 0.3  76.6 0.4  85.8 0.1  85.6 0.2
EGNN(A)-D-M* 82.6 0.6  86.3 0.9  69.4 0.4  74.9 0.4  83.7 0.2  82.8 0.3
EGNN(A)-A-M* 82.7 0.4  87.2 0.5  69.5 0.3  74.5 0.5  83.9 0.2  83.3 0.2
EGNN(A)-A-D* 82.8 0.3  87.0 0.6  69.1 0.3  76.3 0.5  85.2 0.2  85.3 0.3
EGNN(A)*     83.1 0.4  88.4 0.3  69.3 0.3  76.3 0.5  85.6 0.2  85.7 0.2
"""

# Tox21 (ROC-AUC), Lipophilicity and FreeSolv (RMSE), each validation and test.
_TABLE_3 = """
RF           0.78 0.01  0.75 0.03  0.87 0.02  0.86 0.04  1.98 0.07  1.62 0.14
Weave        0.79 0.02  0.80 0.02  0.88 0.06  0.89 0.04  1.35 0.22  1.37 0.14
EGNN(C)      0.82 0.01  0.82 0.01  0.80 0.02  0.75 0.01  1.07 0.08  1.09 0.08
EGNN(A)      0.82 0.01  0.81 0.01  0.79 0.02  0.75 0.01  1.09 0.12  1.01 0.12
"""


def _parsed(text: str, names: list[tuple[str, str]]) -> dict[tuple[str, str, str], Printed]:
    cells: dict[tuple[str, str, str], Printed] = {}
    for line in text.strip().splitlines():
        row, *numbers = line.split()
        pairs = [
            Printed(float(m), float(s)) for m, s in zip(numbers[::2], numbers[1::2], strict=True)
        ]
        cells |= {(row, *name): cell for name, cell in zip(names, pairs, strict=True)}
    return cells


# By row, data set and splitting.
TABLE_2 = _parsed(_TABLE_2, [(dataset, split) for dataset in CITATION for split in SPLITS])
# By row, data set and part.
TABLE_3 = _parsed(_TABLE_3, [(d, part) for d in MOLECULES for part in ("validation", "test")])
ROWS_2 = tuple(dict.fromkeys(row for row, *_ in TABLE_2))
ROWS_3 = tuple(dict.fromkeys(row for row, *_ in TABLE_3))
# What each row is compared with: same splits, same seeds.
BASELINE = {row: ("GCN" if "(C)" in row else "GAT") + "*" * row.endswith("*") for row in ROWS_2[4:]}
