"""Tables of nodes: their split, and what is learnt about their columns and those of the edges."""

from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.core.settings import Settings
from edgewise.data.graph_reader import GraphReader
from edgewise.data.graph_tables import learn_graph_reader
from edgewise.data.molecule_splits import split_by_column
from edgewise.data.sources import GraphInput
from edgewise.data.splits import Split, load_split
from edgewise.data.tables import Table
from edgewise.tasks.base import Task
from edgewise.units.splitting import drawn_split, is_file


def node_split(settings: Settings, task: Task, truth: Tensor, table: Table | None) -> Split:
    """The split of nodes: by a column, by a file, or drawn."""
    if settings.split.split_column:
        if table is None:
            raise EdgewiseError("split_column needs a nodes table; this graph has none")
        return split_by_column(table, settings.split.split_column)
    if is_file(settings.split.split):
        return load_split(settings.split.split)
    return drawn_split(settings, task, truth)


def learnt_reader(
    found: GraphInput, targets: tuple[str, ...], settings: Settings, split: Split
) -> GraphReader:
    """What is learnt about the columns: from the training rows, unless all are asked for."""
    assert found.nodes is not None
    assert found.edges is not None
    data = settings.data
    left_out = (*data.ignore, *targets, *filter(None, (settings.split.split_column,)))
    return learn_graph_reader(
        found.nodes,
        found.edges,
        id=data.id_column,
        numbers=data.numbers,
        categories=data.categories,
        text=data.text,
        ignore=tuple(dict.fromkeys(left_out)),
        source=data.source_column,
        target=data.destination_column,
        directed=found.directed and data.edges == "directed",
        missing=data.missing,
        unknown=data.unknown,
        duplicates=data.duplicates,
        rows=None if data.fit_on == "all" else split.train.numpy(),
    )
