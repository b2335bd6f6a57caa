"""Whole graphs: which of these networks were wired at random, and which have hubs?"""

import networkx as nx
import numpy as np
from sklearn.model_selection import cross_val_score

import edgewise as ew

# 60 networks of 30 to 60 nodes with about as many edges: half with hubs, half without.
draw = np.random.default_rng(0)
networks, kind = [], []
for number in range(60):
    size = int(draw.integers(30, 60))
    hubs = nx.barabasi_albert_graph(size, 2, seed=number)
    wired = nx.gnm_random_graph(size, hubs.number_of_edges(), seed=number)
    networks.append(hubs if number % 2 else wired)
    kind.append("hubs" if number % 2 else "random")

# Every attribute of nodes and edges is a column: numbers are scaled, words become categories, both
# learnt from the training graphs alone.
for graph in networks:
    for node, degree in graph.degree:
        graph.nodes[node]["size"] = ["small", "large"][degree > 4]
    for a, b in graph.edges:
        graph.edges[a, b]["load"] = graph.degree[a] * graph.degree[b]

model = ew.GraphClassifier(epochs=15, hidden=16, learning_rate=0.005)
print(cross_val_score(model, networks, kind, cv=3).mean() > 0.9)  # True

# A number of each graph instead of a class: how long are its paths?
length = [nx.average_shortest_path_length(max_part) for max_part in (
    graph.subgraph(max(nx.connected_components(graph), key=len)) for graph in networks
)]  # fmt: skip
regressor = ew.GraphRegressor(epochs=30, hidden=16, learning_rate=0.005)
print(regressor.fit(networks[:40], length[:40]).score(networks[40:], length[40:]) > 0.5)  # True

# The same from files: edgewise train FOLDER, with networks as GraphML in it, or three tables.
