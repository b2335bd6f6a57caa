"""What is to be learnt: opened from files, split, with the truth beside the data."""

from edgewise.problems.opening import (
    Opened,
    Show,
    open_problem,
    read_graph_tables,
    read_molecule_source,
)
from edgewise.problems.problem import (
    MoleculeProblem,
    NodeProblem,
    Problem,
    molecule_problem,
    node_problem,
)

__all__ = [
    "MoleculeProblem",
    "NodeProblem",
    "Opened",
    "Problem",
    "Show",
    "molecule_problem",
    "node_problem",
    "open_problem",
    "read_graph_tables",
    "read_molecule_source",
]
