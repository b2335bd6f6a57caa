"""Products of dense matrices equal torch's, and each number is the same sum however it is found."""

import pytest
import torch
from torch.testing import assert_close

from edgewise.kernels import backend, dense
from edgewise.kernels.dense import Linear, linear, mapped, product, turned_product


def close(found, left, right):
    """Within what single precision leaves of a sum of products."""
    true = left.double() @ right.double()
    size = left.double().abs() @ right.double().abs()
    assert (found.double() - true).abs().le(2e-6 * size + 1e-12).all()


@pytest.mark.parametrize("rows", [1, 3, 4, 11, 12, 13, 131, 600])
@pytest.mark.parametrize(("features", "width"), [(1, 32), (70, 96), (128, 320), (300, 64)])
def test_a_linear_layer_equals_its_dense_truth(rows, features, width):
    torch.manual_seed(0)
    x, weight, bias = torch.randn(rows, features), torch.randn(width, features), torch.randn(width)
    close(mapped(x, weight, None), x, weight.t())
    ones = torch.ones(rows, 1)
    close(
        mapped(x, weight, bias), torch.cat([x, ones], 1), torch.cat([weight, bias[:, None]], 1).t()
    )
    close(product(x, weight.t().contiguous()), x, weight.t())
    grad = torch.randn(rows, 45)
    close(turned_product(grad, mapped(x, weight, bias)), grad.t(), mapped(x, weight, bias))


def test_a_row_has_the_same_bits_wherever_it_stands_and_with_any_number_of_threads():
    x, weight = torch.randn(257, 96), torch.randn(64, 96)
    whole = mapped(x, weight, None)
    before = backend.num_threads()
    try:
        backend.set_num_threads(1)
        for first in (1, 5, 250):
            assert torch.equal(mapped(x[first:].contiguous(), weight, None), whole[first:])
    finally:
        backend.set_num_threads(before)


def test_gradients_equal_those_of_torch(monkeypatch):
    monkeypatch.setattr(dense, "_better", lambda: True)
    torch.manual_seed(1)
    x, weight, bias = torch.randn(200, 64), torch.randn(32, 64), torch.randn(32)
    found, true = [], []
    for into, layer in ((found, Linear.apply), (true, torch.nn.functional.linear)):
        leaves = [tensor.clone().requires_grad_() for tensor in (x, weight, bias)]
        out = layer(*leaves)
        (out.square().sum() + out[3, 4]).backward()
        into += [out, *(leaf.grad for leaf in leaves)]
    for one, other in zip(found, true, strict=True):
        assert_close(one, other, rtol=1e-4, atol=1e-3)


def test_double_precision_few_rows_and_other_shapes_are_torchs(monkeypatch):
    monkeypatch.setattr(dense, "_better", lambda: True)
    monkeypatch.setattr(dense.Linear, "apply", lambda *_: pytest.fail("not for these"))
    linear(torch.randn(500, 32).double(), torch.randn(32, 32).double())
    linear(torch.randn(5, 32), torch.randn(32, 32))
    linear(torch.randn(500, 32), torch.randn(31, 32))
    linear(torch.randn(3, 500, 32), torch.randn(32, 32))
    with backend.plain_kernels():
        linear(torch.randn(500, 32), torch.randn(32, 32))
