"""A network does what torch users do with theirs: copy, save, cast, compile, distribute."""

import copy
import io
import subprocess
import sys
import warnings

import pytest
import torch
from commands import forking
from torch import nn
from torch.multiprocessing import start_processes
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close

import edgewise as ew
from edgewise.core.errors import EdgewiseError
from edgewise.nn.readouts import GraphReadout

pytestmark = pytest.mark.slow

SHAPES = {
    "nodes, conv": {},
    "nodes, attention": {"layer": "attention"},
    "nodes, attention of GAT": {
        "layer": "attention",
        "normalize": "row",
        "adapt": False,
        "heads": 2,
    },
    "nodes, deep": {"norm": "batch", "encoder": "linear", "residual": True, "head": "mlp"},
    "graphs, conv": {"head": "linear"},
    "graphs, attention": {"layer": "attention", "head": "linear", "norm": "layer"},
}
EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES)


def graph_set():
    """Four graphs of three, four, five and six nodes: rings that go one way."""
    generator = torch.Generator().manual_seed(2)
    sizes = [3, 4, 5, 6]
    rings = [torch.stack([torch.arange(n), (torch.arange(n) + 1) % n]) for n in sizes]
    offset = torch.tensor([0, *sizes]).cumsum(0)
    return ew.GraphSet(
        x=torch.rand(sum(sizes), 4, generator=generator),
        edge_index=torch.cat(rings, dim=1),
        edge_attr=torch.rand(sum(sizes), 2, generator=generator),
        node_offset=offset,
        edge_offset=offset,
        ids=("a", "b", "c", "d"),
        rows=torch.arange(4),
    )


def built(shape, dropout=0.0):
    torch.manual_seed(1)
    readout = GraphReadout() if shape.startswith("graphs") else None
    settings = ew.ModelSettings(**{"hidden": 3, "dropout": dropout, **SHAPES[shape]})
    return ew.ChannelNetwork(4, 2, 2, settings, readout=readout)


def batch():
    return graph_set().batch([0, 1, 2, 3])


@EVERY_SHAPE
def test_a_deep_copy_is_a_model_of_its_own(shape):
    model = built(shape).eval()
    copied = copy.deepcopy(model)
    expected = model(batch())
    assert torch.equal(copied(batch()), expected)
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.add_(1)
    assert torch.equal(model(batch()), expected)
    assert not torch.equal(copied(batch()), expected)


@EVERY_SHAPE
def test_weights_come_back_from_a_file_without_pickled_code(shape):
    model = built(shape, dropout=0.3)
    model.train()(batch())  # running means of norms are weights as well
    stream = io.BytesIO()
    torch.save(model.state_dict(), stream)
    stream.seek(0)
    other = built(shape, dropout=0.3)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    other.load_state_dict(torch.load(stream, weights_only=True))
    assert torch.equal(other.eval()(batch()), model.eval()(batch()))


def as_type(given, dtype):
    edges = given.edge_index, given.edge_attr
    return ew.Batch.of(given.x.to(dtype), *edges, given.graph, given.num_graphs)


@EVERY_SHAPE
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_gives_about_the_same_with_gradients(shape, dtype, training):
    model = built(shape).train(training)
    expected = model(batch())
    small = copy.deepcopy(model).to(dtype)
    out = small(as_type(batch(), dtype))
    assert out.dtype == dtype
    assert_close(out.float(), expected, rtol=0.1, atol=0.1)
    out.float().square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in small.parameters())
    assert any(p.grad.any() for p in small.parameters())


@EVERY_SHAPE
def test_features_of_another_type_are_refused_in_a_sentence(shape):
    with pytest.raises(EdgewiseError, match=r"x is float32.*weights are float16; use x\.to"):
        built(shape).half()(batch())


@EVERY_SHAPE
@pytest.mark.parametrize("plain", [True, False])
def test_autocast_to_bfloat16_gives_about_the_same_with_gradients(shape, plain):
    model = built(shape)
    expected = copy.deepcopy(model)(batch())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        if plain:
            with ew.plain_kernels():
                out = model(batch())
        else:
            out = model(batch())
    assert_close(out.float(), expected, rtol=0.1, atol=0.1)
    out.float().square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


class Own(nn.Module):
    """Somebody's own network with a layer of each kind."""

    def __init__(self):
        super().__init__()
        self.first, self.second = ew.ChannelConv(4, 3, 2), ew.ChannelAttention(6, 2, 2)

    def forward(self, x, edge_index, edge_attr):
        h = torch.relu(self.first(x, edge_index, edge_attr))
        return torch.sigmoid(self.second(h, edge_index, edge_attr))


def compiled(model):
    torch._dynamo.reset()
    return torch.compile(model, backend="aot_eager")


def outputs_and_gradients(run, model, *inputs):
    model.zero_grad()
    torch.manual_seed(4)
    out = run(*inputs)
    out.square().sum().backward()
    return [out.detach(), *(parameter.grad.clone() for parameter in model.parameters())]


@pytest.mark.slow
@EVERY_SHAPE
def test_a_compiled_network_gives_the_same_with_gradients(shape):
    model = built(shape, dropout=0.2)
    expected = outputs_and_gradients(model, model, batch())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's, about itself
        found = outputs_and_gradients(compiled(model), model, batch())
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other)


@pytest.mark.slow
def test_layers_in_a_compiled_network_of_ones_own_give_the_same():
    model, given = Own(), batch()
    inputs = given.x, given.edge_index, given.edge_attr
    expected = outputs_and_gradients(model, model, *inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = outputs_and_gradients(compiled(model), model, *inputs)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other)


def test_a_network_that_is_not_compiled_does_not_wait_for_the_compiler():
    program = (
        "import sys, torch, edgewise as ew\n"
        "model = ew.ChannelNetwork(3, 2).eval()\n"
        "model(ew.Batch.of(torch.eye(3), torch.tensor([[0, 1], [1, 2]])))\n"
        "print('torch._dynamo' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "False", run.stderr


def one_of_two(rank, shape, place, out):
    """A process of two: the gradients of its half of the graphs, averaged with the other's."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{place}", rank=rank, world_size=2
    )
    model = DistributedDataParallel(built(shape))
    model(graph_set().batch([rank, rank + 2])).square().mean().backward()
    if rank == 0:
        torch.save({k: p.grad for k, p in model.module.named_parameters()}, out)
    # Nobody leaves while the other still talks to it.
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["graphs, conv", "graphs, attention"])
def test_two_processes_have_the_gradients_of_one_on_the_same_rows(shape, tmp_path):
    out = tmp_path / "gradients.pt"
    told = shape, str(tmp_path / "rendezvous"), str(out)
    start_processes(one_of_two, told, nprocs=2, start_method=forking().get_start_method())
    found = torch.load(out, weights_only=True)
    model = built(shape)
    model(batch()).square().mean().backward()
    for name, parameter in model.named_parameters():
        assert_close(found[name], parameter.grad)
