"""Our Adam is torch's, to the last bit."""

import copy

import pytest
import torch
from drawn import noise
from torch import nn

from edgewise.training.optimizer import Adam, clip_gradients


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2), nn.Linear(2, 3))


def groups(model, decay):
    weights = [p for name, p in model.named_parameters() if name.endswith("weight")]
    biases = [p for name, p in model.named_parameters() if name.endswith("bias")]
    return [
        {"params": weights, "weight_decay": decay},
        {"params": iter(biases), "weight_decay": 0.0},
    ]


def take_steps(model, optimizer, numbers):
    for number in numbers:
        optimizer.zero_grad()
        for group in optimizer.param_groups:
            group["lr"] = 0.01 / (1 + number)
        model[:3](noise(4, 5, seed=number, dtype=torch.float32)).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize("decoupled", [False, True])
def test_steps_are_those_of_torch(decoupled):
    mine, theirs = network(), network()
    torch_optimizer = torch.optim.AdamW if decoupled else torch.optim.Adam
    take_steps(mine, Adam(groups(mine, 0.1), 0.01, decoupled=decoupled), range(5))
    take_steps(theirs, torch_optimizer(groups(theirs, 0.1), lr=0.01, fused=True), range(5))
    for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(one, other)


def test_an_optimiser_continues_from_the_state_of_another():
    whole, model = network(), network()
    first = Adam(groups(model, 0.1), 0.01)
    take_steps(whole, Adam(groups(whole, 0.1), 0.01), range(6))
    take_steps(model, first, range(3))
    state = copy.deepcopy(first.state)
    second = Adam(groups(model, 0.1), 0.01)
    second.restore(state)
    take_steps(model, second, range(3, 6))
    for one, other in zip(whole.parameters(), model.parameters(), strict=True):
        assert torch.equal(one, other)
    assert all(slots["step"] == 3 for slots in state.values())


def test_the_state_is_named_as_torch_names_it():
    mine, theirs = network(), network()
    optimizers = Adam(groups(mine, 0.1), 0.01), torch.optim.Adam(groups(theirs, 0.1), fused=True)
    take_steps(mine, optimizers[0], range(1))
    take_steps(theirs, optimizers[1], range(1))
    expected = optimizers[1].state_dict()["state"]
    assert optimizers[0].state.keys() == expected.keys()  # none of the last layer, which is unused
    for number, slots in optimizers[0].state.items():
        assert {k: (v.shape, v.dtype) for k, v in slots.items()} == {
            k: (v.shape, v.dtype) for k, v in expected[number].items()
        }


@pytest.mark.parametrize("most", [0.5, 1e6])
def test_gradients_are_clipped_to_the_bits_of_torch(most):
    mine, theirs = network(), network()
    for model, clip in ((mine, clip_gradients), (theirs, nn.utils.clip_grad_norm_)):
        model[:3](noise(4, 5, seed=1, dtype=torch.float32)).square().sum().backward()
        clip(list(model.parameters()), most)
    pairs = zip(mine[:3].parameters(), theirs[:3].parameters(), strict=True)
    assert all(torch.equal(one.grad, other.grad) for one, other in pairs)
    assert mine[3].weight.grad is None
