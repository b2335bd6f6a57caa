"""Every setting in one place: its default, help, limits, and who decides whether it holds.

Flags, config files, estimators, saved files and the report follow from these declarations.
"""

from dataclasses import dataclass

from edgewise.core.registries import FEATURIZERS, LAYERS, TASKS, UNITS
from edgewise.core.registry import Choices
from edgewise.core.setting import BELOW_ONE, Part, setting

NORMALIZATIONS = ("doubly_stochastic", "symmetric", "row", "gcn", "none")
# What they are is said in edgewise.core.presets: those of nodes, and those of edges.
REGIMES = ("shallow", "wide", "deep", "gated", "direct", "paths")
POOLINGS = ("max", "mean", "sum", "attention", "mean+max+sum", "mean+max+sum+attention")


@dataclass(frozen=True)
class DataSettings(Part):
    """How data are read."""

    task: str = setting(
        "auto", "task, if it is not the one guessed from the target", choices=Choices(TASKS, "auto")
    )
    predict: str = setting(
        "auto",
        "what a row of predictions is, if it is not what the data are usually used for",
        choices=Choices(UNITS, "auto", ending="s"),
    )
    target: tuple[str, ...] = setting((), "column to predict, may be repeated", of="source")
    smiles_column: str = setting(
        "", "column of SMILES, if it is not found by its name", of="source"
    )
    graph_column: str = setting(
        "graph", "tables of graphs, nodes and edges: column that names the graph", of="source"
    )
    id_column: str = setting("id", "nodes table: column that names each node", of="source")
    source_column: str = setting(
        "source", "edges table: column of the node an edge starts from", of="source"
    )
    destination_column: str = setting(
        "target", "edges table: column of the node an edge goes to", of="source"
    )
    edges: str = setting(
        "directed",
        "whether edges have a direction",
        of="source",
        choices=("directed", "undirected"),
    )
    text: tuple[str, ...] = setting((), "column to read as text, may be repeated", of="source")
    categories: tuple[str, ...] = setting(
        (), "column to read as categories, may be repeated", of="source"
    )
    numbers: tuple[str, ...] = setting(
        (), "column to read as numbers, may be repeated", of="source"
    )
    ignore: tuple[str, ...] = setting((), "column to leave out, may be repeated", of="source")
    label_columns: tuple[str, ...] = setting(
        (),
        "with --label-messages, column of the edges that is known only together with the label "
        "and shown with it, may be repeated",
        of="unit",
    )
    fit_on: str = setting(
        "train",
        "rows from which scales, vocabularies and categories of the columns are learnt (all: the "
        "transductive setting)",
        of="source",
        choices=("train", "all"),
    )
    missing: str = setting(
        "error",
        "empty cells in columns of numbers: error, or the mean",
        of="source",
        choices=("error", "mean"),
    )
    unknown: str = setting(
        "error",
        "edges to unknown nodes: error, or drop them",
        of="source",
        choices=("error", "drop"),
    )
    duplicates: str = setting(
        "error",
        "repeated edges: error, or the sum or maximum of their values",
        of="source",
        choices=("error", "sum", "max"),
    )
    on_invalid: str = setting(
        "skip",
        "molecules that cannot be read: skip them, or error",
        of="source",
        choices=("skip", "error"),
    )
    encoding: str = setting("utf-8", "character encoding of text files", of="source")
    decimal: str = setting(
        ".", "decimal separator of numbers in text files", of="source", choices=(".", ",")
    )
    missing_values: tuple[str, ...] = setting(
        (),
        "word that stands for a missing value, besides the usual ones; may be repeated",
        of="source",
    )


@dataclass(frozen=True)
class SplitSettings(Part):
    """Which rows train, validate and test."""

    split: str = setting(
        "dense",
        "dense (60/20/20), sparse (5/15/80), molecules (80/10/10), scaffold, three shares such "
        "as 0.7,0.1,0.2, or a JSON file of row numbers",
    )
    split_column: str = setting("", "column that says train, validation or test", of="source")
    time_column: str = setting(
        "",
        "column of the edges that says when each happened: earlier edges train, later ones "
        "validate and test, and messages come from earlier edges alone",
        of="unit",
    )
    stratify: bool = setting(False, "keep the distribution of classes or values in each subset")
    split_seed: int | None = setting(None, "seed of the split, if it is not --seed", low=0)


@dataclass(frozen=True)
class ModelSettings(Part):
    """What a network is made of, apart from the widths that the data decide."""

    layer: str = setting("conv", "layer of the network", choices=Choices(LAYERS))
    normalize: str = setting(
        "doubly_stochastic",
        "normalisation of the edge channels",
        of="layer",
        choices=NORMALIZATIONS,
    )
    adapt: bool = setting(
        True, "attention coefficients of a layer are the edge channels of the next", of="layer"
    )
    directed: bool = setting(
        True, "direction as edge channels: forward, backward and their sum", of="source"
    )
    reciprocal: str = setting(
        "auto",
        "without --directed, how the two directions between two nodes join; auto: max where "
        "every edge of the training data has an equal reverse edge, else sum",
        of="source",
        choices=("auto", "sum", "max"),
    )
    depth: int = setting(2, "number of layers", low=1, high=100)
    hidden: int = setting(
        64, "width of a hidden layer, per edge channel and head", low=1, high=10_000
    )
    heads: int = setting(1, "attention heads of the hidden layers", of="layer", low=1)
    dropout: float = setting(
        0.6,
        "dropout on the input of each layer and on attention coefficients",
        low=0,
        high=BELOW_ONE,
    )
    channels: int = setting(
        0,
        "largest number of learnt edge channels, of which there are a divisor of the hidden "
        "width; 0: one for each column",
        of="layer",
        low=0,
    )
    encoder: str = setting(
        "none",
        "linear map of the node features to the hidden width, before the first layer",
        choices=("none", "linear"),
    )
    activation: str = setting(
        "elu", "activation after each hidden layer", choices=("elu", "relu", "gelu")
    )
    norm: str = setting(
        "none",
        "batch or layer normalisation of hidden node features",
        choices=("none", "batch", "layer"),
    )
    root_weight: bool = setting(
        False,
        "add a linear map of a node's own features to what each layer gathers from its neighbours",
        of="layer",
    )
    residual: bool = setting(False, "add the input of a hidden layer to its output")
    feed_forward: int = setting(
        0, "width of a feed-forward part in each block, times the hidden width; 0: none", low=0
    )
    head: str = setting(
        "layer",
        "output head: the last layer itself (its channels averaged), one linear layer, or a "
        "perceptron of two",
        of="unit",
        choices=("layer", "linear", "mlp"),
    )
    label_messages: bool = setting(
        False,
        "labels of training edges are features of theirs that other edges are predicted from",
        of="unit",
    )
    ports: bool = setting(
        True,
        "number of an edge among its parallel edges as a channel, where there are any",
        of="unit",
    )
    pooling: str = setting("max", "pooling of the nodes of a graph", of="unit", choices=POOLINGS)
    featurizer: str = setting(
        "paper", "features of atoms and bonds", of="source", choices=Choices(FEATURIZERS)
    )
    pair_threshold: int = setting(
        10, "bonds that a pair of elements needs for a channel of its own", of="source", low=0
    )
    descriptors: str = setting(
        "none",
        "auto: blend in a kernel regression on fingerprints and descriptors of molecules, by the "
        "weight that suits the validation rows",
        of="source",
        choices=("none", "auto"),
    )
    incident: bool = setting(
        False,
        "add the channels of its edges, summed up, to the input of each node; needs encoder = "
        "linear",
        of="unit",
    )
    incident_means: bool = setting(
        True, "number of incident edges and means of their channels as node features", of="unit"
    )
    paths: bool = setting(
        False,
        "number of the paths of two edges between the ends of an edge, and means along them, as "
        "features of the edge",
        of="unit",
    )
    regime: str = setting(
        "given",
        "kind of network: as the other settings say (given), one of a fixed portfolio, or auto, "
        "which chooses from it on validation data",
        of="unit",
        choices=("given", "auto", *REGIMES),
    )

    @property
    def gates(self) -> int:
        """Learnt edge channels of a hidden layer."""
        most = min(self.channels or self.hidden, self.hidden)
        return max(number for number in range(1, most + 1) if self.hidden % number == 0)


@dataclass(frozen=True)
class TrainingSettings(Part):
    """How a network is trained."""

    optimizer: str = setting(
        "adam",
        "adam, with L2 regularisation, or adamw, with weight decay",
        choices=("adam", "adamw"),
    )
    learning_rate: float = setting(0.005, "learning rate of the optimiser", low=1e-12)
    schedule: str = setting(
        "constant",
        "learning rate over the epochs; cosine: linear warm-up, then cosine decay to 0",
        choices=("constant", "cosine"),
    )
    warmup: float = setting(
        0.05,
        "share of the steps in which the learning rate of schedule = cosine rises",
        low=0,
        high=1,
    )
    clip: float = setting(0.0, "largest norm of the gradient of a step; 0: any", low=0)
    weight_decay: float = setting(0.0005, "regularisation of weights, not of biases", low=0)
    epochs: int = setting(1000, "largest number of epochs", low=1)
    patience: int = setting(
        100, "epochs without a lower validation loss before early stopping", low=1
    )
    monitor: str = setting(
        "loss",
        "the epoch whose weights are kept: that of the lowest validation loss, of the best "
        "validation score (the task's headline metric), or the last one, if early stopping, which "
        "then goes by the loss, does not end training before it",
        choices=("loss", "score", "last"),
    )
    batch_size: int = setting(
        64,
        "graphs, edges to predict, or with --neighbors nodes in a batch",
        of="unit",
        low=1,
        high=1_000_000,
    )
    neighbors: str = setting(
        "",
        "sampled training: how many neighbours of a node each layer draws (fan-outs), the last "
        "layer's first, such as 15,10; one number for all layers; -1 for all neighbours; empty: "
        "every step sees the whole graph",
        of="unit",
    )
    weighted: bool = setting(
        False,
        "weight classes in the loss by how rare they are in training; probabilities are then those "
        "of classes that are equally frequent",
        of="task",
    )
    scale_targets: bool = setting(
        True, "scale targets to mean 0 and standard deviation 1", of="task"
    )
    coverage: float = setting(
        0.9,
        "share of new rows whose prediction interval or set is to hold the truth; 0: neither",
        of="task",
        low=0,
        high=BELOW_ONE,
    )
    ensemble: int = setting(1, "models whose predictions are averaged", low=1, high=1000)
    seed: int = setting(0, "seed of the split, the initial weights and dropout", low=0)
    device: str = setting("auto", "device to train on: auto, cpu, cuda or mps")
