"""A batch carries features, edges and wanted rows; what layers prepare is prepared once."""

import pytest
import torch
import truth
from drawn import graphs, noise
from hypothesis import given
from torch.testing import assert_close

import edgewise as ew
from edgewise.core.errors import EdgewiseError
from edgewise.graphs.edges import DIRECTIONS, Edges
from edgewise.nn.layers import ChannelAttention, ChannelConv
from edgewise.nn.normalization import NORMALIZATIONS

LAYERS = [
    *(("conv", normalize) for normalize in NORMALIZATIONS),
    *(("attention", normalize) for normalize in NORMALIZATIONS if normalize != "gcn"),
]


def made(layer, normalize, channels=2, **more):
    kind = {"conv": ChannelConv, "attention": ChannelAttention}[layer]
    return kind(3, 4, channels, normalize, **more).double()


@given(graph=graphs(max_channels=2))
def test_directions_are_what_the_dense_matrices_say(graph):
    edges, raw = Edges(*graph), truth.dense(*graph)
    back = raw.transpose(0, 1)
    symmetric = torch.equal(raw, back)
    expected = {
        "directed": truth.directed(raw),
        "sum": raw + back,
        "max": torch.maximum(raw, back),
        "as_given": raw,
        "by_symmetry": raw if symmetric else raw + back,
        "parallel": truth.directed(raw),
        "parallel_both_ways": raw + back,
        "merged": truth.directed(raw),
        "merged_sum": raw + back,
    }
    assert set(expected) == set(DIRECTIONS)
    for direction, matrix in expected.items():
        encoded = edges.encoded(direction)
        # Summed, because some keep an edge and its reverse apart.
        empty = torch.zeros_like(matrix)
        found = empty.index_put(tuple(encoded.edge_index), encoded.edge_attr, accumulate=True)
        assert_close(found, matrix)
        assert edges.encoded(direction) is encoded


def test_a_batch_counts_what_it_holds(digraph):
    batch = ew.Batch.of(noise(5, 3), *digraph[:2])
    assert repr(batch) == "Batch(nodes=5, edges=7, graphs=1)"
    assert repr(batch.with_rows(torch.tensor([1]))) == "Batch(nodes=5, edges=7, graphs=1, rows=1)"
    assert batch.graph_of_node.tolist() == [0] * 5


def test_edges_without_values_weigh_one_and_a_column_of_values_is_a_channel():
    edge_index = torch.tensor([[0, 1], [1, 0]])
    assert ew.Batch.of(noise(2, 3), edge_index).edge_attr.tolist() == [[1.0], [1.0]]
    assert ew.Batch.of(noise(2, 3), edge_index, torch.tensor([2.0, 5.0])).edge_attr.shape == (2, 1)


@pytest.mark.parametrize(
    ("graph", "num_graphs", "sentence"),
    [
        (torch.zeros(3).long(), None, r"graph has \[3\] numbers for 5 nodes"),
        (torch.tensor([0, 0, 1, 1, 2]), 2, r"graph names graph 2.*num_graphs=2"),
        (torch.tensor([0, 0, 1, 1, -1]), None, r"graph names graph -1"),
    ],
)
def test_graphs_that_do_not_fit_the_nodes_are_refused(graph, num_graphs, sentence, digraph):
    with pytest.raises(EdgewiseError, match=sentence):
        ew.Batch.of(noise(5, 3), *digraph[:2], graph, num_graphs)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_batch_moves_to_a_device_with_all_it_holds(sparse, digraph):
    x = noise(5, 3)
    x = ew.sparse_features(x) if sparse else x
    graph, rows = torch.tensor([0, 0, 0, 1, 1]), torch.tensor([1])
    moved = ew.Batch.of(x, *digraph[:2], graph, rows=rows).to("meta")
    tensors = (moved.x, moved.edge_index, moved.edge_attr, moved.graph, moved.rows)
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert (moved.num_graphs, len(moved.x)) == (2, 5)


def test_a_batch_that_is_there_already_keeps_its_edges(digraph):
    batch = ew.Batch.of(noise(5, 3), *digraph[:2])
    assert batch.to("cpu").edges is batch.edges


def test_other_wanted_rows_share_edges_and_operators(digraph):
    model = ew.ChannelNetwork(3, 2, 2).double().eval()
    batch = ew.Batch.of(noise(5, 3), *digraph[:2])
    every = model(batch)
    some = batch.with_rows(torch.tensor([4, 0, 0]))
    assert some.edges is batch.edges
    assert_close(model(some), every[[4, 0, 0]])
    assert some.with_rows(None).rows is None


def counted(monkeypatch):
    """Count how often a convolution builds its operator."""
    built, operator = [], ChannelConv.operator

    def counting(self, *arguments):
        built.append(self)
        return operator(self, *arguments)

    monkeypatch.setattr(ChannelConv, "operator", counting)
    return built


def test_operators_are_built_once_for_all_layers_batches_and_members(digraph, monkeypatch):
    built = counted(monkeypatch)
    settings = ew.ModelSettings(depth=3, hidden=4)
    members = [ew.ChannelNetwork(3, 2, 2, settings).double().eval() for _ in range(3)]
    batch = ew.Batch.of(noise(5, 3), *digraph[:2])
    for member in members:
        member(batch)
        member(batch.with_rows(torch.tensor([1])))
    assert len(built) == 1
    first, *others = (block.layer for block in members[0].blocks)
    edges = batch.edges.encoded("directed")
    assert all(edges.prepared(layer) is edges.prepared(first) for layer in others)


@pytest.mark.parametrize(
    "other",
    [
        made("conv", "row"),
        made("conv", "symmetric", flow="target_to_source"),
        made("conv", "symmetric").float(),
        made("attention", "symmetric", heads=2),
    ],
)
def test_layers_that_prepare_otherwise_do_not_share(other, digraph):
    edges, layer = Edges(*digraph), made("conv", "symmetric")
    assert edges.prepared(layer) is edges.prepared(made("conv", "symmetric"))
    assert edges.prepared(layer) is not edges.prepared(other)


def of_several(channels=2, graphs=6):
    """Graphs of 1 to 6 nodes with edges one way, some without any."""
    generator = torch.Generator().manual_seed(1)
    indices, attrs, sizes = [], [], []
    for number in range(graphs):
        nodes = number % 6 + 1
        pairs = torch.rand(nodes, nodes, generator=generator) < (0.0 if number == 2 else 0.5)
        indices.append(pairs.nonzero().T)
        attr = torch.rand(indices[-1].size(1), channels, generator=generator, dtype=torch.float64)
        attrs.append(attr * (torch.rand(attr.shape, generator=generator) < 0.7))
        sizes.append(nodes)
    counts = torch.tensor([0, *(index.size(1) for index in indices)])
    return ew.GraphSet(
        x=noise(sum(sizes), 3),
        edge_index=torch.cat(indices, dim=1),
        edge_attr=torch.cat(attrs),
        node_offset=torch.tensor([0, *sizes]).cumsum(0),
        edge_offset=counts.cumsum(0),
        ids=tuple(map(str, range(graphs))),
        rows=torch.arange(graphs),
    )


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize(("layer", "normalize"), LAYERS)
@pytest.mark.parametrize("chosen", [[0], [5, 1, 3], [2, 2, 4], list(range(6))])
def test_operators_cut_from_a_set_are_those_of_the_batch_itself(layer, normalize, dropout, chosen):
    more = {"dropout": dropout} if layer == "attention" else {}
    one = made(layer, normalize, **more)
    batch = of_several().batch(chosen)
    whole = batch.edges._of_whole_set(one)
    assert whole is not None
    cut = batch.edges.prepared(one)
    own = one.prepare(Edges(batch.edge_index, batch.edge_attr, len(batch.x)))
    assert_close(cut.to_dense(), own.to_dense())
    assert_close(one.eval().propagate(batch.x, cut), one.propagate(batch.x, own))
    assert batch.edges.prepared(one) is cut


@pytest.mark.parametrize("direction", ["directed", "sum", "max"])
def test_a_batch_of_a_set_encodes_direction_as_its_own_edges_do(direction):
    batch = of_several().batch([4, 1])
    own = Edges(batch.edge_index, batch.edge_attr, len(batch.x)).encoded(direction)
    found = batch.edges.encoded(direction)
    assert torch.equal(found.edge_index, own.edge_index)
    assert torch.equal(found.edge_attr, own.edge_attr)


def test_the_operator_of_a_set_is_built_once_for_all_batches(monkeypatch):
    built = counted(monkeypatch)
    model = ew.ChannelNetwork(3, 2, 2, direction="as_given").double().eval()
    many = of_several()
    for chosen in ([0, 1], [3], [5, 4, 2]):
        model(many.batch(chosen))
    assert len(built) == 1


@pytest.mark.parametrize(("layer", "normalize"), LAYERS)
def test_a_layer_of_a_set_too_large_to_keep_is_prepared_batch_by_batch(
    layer, normalize, monkeypatch
):
    one = made(layer, normalize).eval()
    kept = of_several().batch([5, 1])
    expected = one.propagate(kept.x, kept.edges.prepared(one))
    monkeypatch.setattr("edgewise.graphs.graph_set.MOST_ROWS", 0)
    large = of_several().batch([5, 1])
    assert large.edges._of_whole_set(one) is None
    assert_close(one.propagate(large.x, large.edges.prepared(one)), expected)
