"""The equations of section 3 of the paper on dense arrays: slow, simple, the truth of the tests.

Edges are ``[nodes, nodes, channels]``. Nothing here knows of the package.
"""

import torch
from torch.nn.functional import leaky_relu


def dense(edge_index, edge_attr, num_nodes):
    """Edge lists to an array: entry ``[i, j]`` of the edge from i to j, 0 for no edge."""
    raw = edge_attr.new_zeros(num_nodes, num_nodes, edge_attr.size(1))
    return raw.index_put((edge_index[0], edge_index[1]), edge_attr)


def add_loops(raw):
    """Weight 1 on the diagonal of every channel wherever it is 0."""
    diagonal = torch.eye(len(raw), dtype=torch.bool).unsqueeze(2)
    return torch.where(diagonal & (raw == 0), torch.ones_like(raw), raw)


def directed(raw):
    """Section 3.5: forward, backward, both."""
    return torch.cat([raw, raw.transpose(0, 1), raw + raw.transpose(0, 1)], dim=2)


def row(raw):
    """Eq. 3."""
    return raw / _positive(raw.sum(dim=1, keepdim=True))


def symmetric(raw):
    """Eq. 4: the column sum of one end, the row sum of the other."""
    over_rows, over_columns = raw.sum(dim=0, keepdim=True), raw.sum(dim=1, keepdim=True)
    return raw / (_positive(over_rows).sqrt() * _positive(over_columns).sqrt())


def gcn(raw):
    """GCN's own form on directed graphs: the row sums of both ends."""
    degree = raw.sum(dim=1)
    both = degree.unsqueeze(1) * degree.unsqueeze(0)
    return torch.where(both > 0, raw / _positive(both).sqrt(), torch.zeros_like(raw))


def doubly_stochastic(raw):
    """Eqs. 1 and 2."""
    tilde = row(raw)
    return torch.einsum("ikp,jkp,kp->ijp", tilde, tilde, 1 / _positive(tilde.sum(dim=0)))


NORMALIZATIONS = {
    "doubly_stochastic": doubly_stochastic,
    "symmetric": symmetric,
    "row": row,
    "gcn": gcn,
}


def apply(edges, h):
    """``[nodes, features]`` gathered along every channel, concatenated."""
    return torch.cat([edges[:, :, p] @ h for p in range(edges.size(2))], dim=1)


def conv(x, edges, weight):
    """EGNN(C), without activation."""
    return apply(edges, x @ weight)


def attention(x, edges, weight, a, normalize, slope=0.2):
    """EGNN(A), without activation: the new features, and the edges of the next layer."""
    h = x @ weight
    score = torch.stack(
        [torch.stack([(a * torch.stack([h_i, h_j])).sum() for h_j in h]) for h_i in h]
    )
    f = leaky_relu(score, slope).exp()
    adapted = normalize(f.unsqueeze(2) * edges)
    return apply(adapted, h), adapted


def _positive(total):
    return torch.where(total > 0, total, torch.ones_like(total))  # 0 / 1 stays 0
