"""Steps over all rows of a graph give what torch gives, values and gradients."""

import pytest
import torch
from torch.testing import assert_close

from edgewise.kernels.hubs import descending
from edgewise.kernels.log_softmax import MANY_ROWS, REGISTER, log_softmax, softmax
from edgewise.kernels.selection import select_rows


@pytest.mark.parametrize("classes", [1, 2, 7, REGISTER])
@pytest.mark.parametrize("rows", [0, 5, MANY_ROWS + 1])
def test_softmax_is_that_of_torch(rows, classes):
    x = (100 * torch.randn(rows, classes, dtype=torch.float64)).requires_grad_()
    grad = torch.randn(rows, classes, dtype=torch.float64)
    for ours, theirs in ((log_softmax, torch.log_softmax), (softmax, torch.softmax)):
        found, truth = ours(x), theirs(x, 1)
        assert_close(found, truth, rtol=1e-11, atol=1e-11)
        gradients = (torch.autograd.grad(out, x, grad)[0] for out in (found, truth))
        assert_close(*gradients, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("size", [1.0, 100.0, 1e5])
def test_large_numbers_do_not_cancel(size):
    x = size * torch.randn(MANY_ROWS + 1, 7)
    truth = x.double().softmax(1)
    assert_close(softmax(x).double(), truth, rtol=0, atol=5e-7)
    assert_close(softmax(x).sum(1), torch.ones(len(x)), rtol=0, atol=1e-6)


def test_few_rows_round_as_in_torch():
    x = torch.randn(MANY_ROWS, 7)
    assert torch.equal(log_softmax(x), torch.log_softmax(x, 1))


@pytest.mark.parametrize("chosen", [[], [2], [3, 0, 1], [1, 1, 4, 1]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_chosen_rows_and_their_gradient_have_the_bits_of_torch(chosen, dtype):
    x = torch.randn(5, 3, dtype=dtype).T.contiguous().T.requires_grad_()
    rows = torch.tensor(chosen, dtype=torch.long)
    grad = torch.randn(len(chosen), 3, dtype=dtype)
    found, truth = select_rows(x, rows), x[rows]
    assert torch.equal(found, truth)
    assert torch.equal(*(torch.autograd.grad(out, x, grad)[0] for out in (found, truth)))


def test_equal_scores_stand_with_the_later_one_first():
    scores = torch.tensor([[0.0, 1.0], [-0.0, -3.0], [2.0, 1.0], [0.0, float("-inf")]])
    for dtype in (torch.float32, torch.float64):
        order = descending(scores.to(dtype).numpy())
        assert order.T.tolist() == [[2, 3, 1, 0], [2, 0, 1, 3]]
