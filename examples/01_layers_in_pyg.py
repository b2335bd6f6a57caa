"""The two layers in your own PyTorch Geometric model: change the import, add edge channels."""

import torch
from torch.nn.functional import cross_entropy, elu

import edgewise as ew
from edgewise.data.synthetic import direction_and_kind_graph

graph, ceilings = direction_and_kind_graph(1000)  # labels depend on direction and kind of edges
data = ew.to_pyg(graph)
data.edge_index, data.edge_attr = ew.directed_channels(data.edge_index, data.edge_attr)


class Net(torch.nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.first = ew.ChannelAttention(data.num_features, 16, edge_channels=channels)
        self.second = ew.ChannelAttention(16 * channels, 6, edge_channels=channels, concat=False)

    def forward(self, x, edge_index, edge_attr):
        h, edges = self.first(x, edge_index, edge_attr, return_edges=True)
        return self.second.propagate(elu(h), edges)  # along the adapted edges


torch.manual_seed(0)
net = Net(data.edge_attr.size(1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=1e-3)
labelled = torch.randperm(1000)
train, test = labelled[:600], labelled[600:]
for _ in range(150):
    optimizer.zero_grad()
    out = net(data.x, data.edge_index, data.edge_attr)
    cross_entropy(out[train], data.y[train]).backward()
    optimizer.step()
with torch.no_grad():
    right = net(data.x, data.edge_index, data.edge_attr)[test].argmax(1) == data.y[test]
print(f"test accuracy {right.float().mean():.2f}")
print(f"without direction no model can expect more than {ceilings.without_direction:.2f}")
