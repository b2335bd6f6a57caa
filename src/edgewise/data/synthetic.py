"""Synthetic citation graphs whose labels depend on the direction and the kind of each citation."""

from dataclasses import dataclass

import numpy as np
import torch

from edgewise.core.errors import EdgewiseError
from edgewise.graphs.graph import Graph

KINDS = ("supports", "disputes")
# How a paper is joined to its four groups of neighbours: (it cites them, kind of citation).
# The first one decides the label.
_ROLES = ((True, 0), (True, 1), (False, 0), (False, 1))


@dataclass(frozen=True)
class Ceilings:
    """The best accuracy that any model can expect, by what it sees of the edges."""

    all: float = 1.0
    without_direction: float = 0.5
    without_kinds: float = 0.5
    without_both: float = 0.25


def direction_and_kind_graph(
    papers: int = 1000,
    *,
    topics: int = 6,
    group: int = 3,
    reuse: float = 2.0,
    noise: float = 0.3,
    seed: int = 0,
) -> tuple[Graph, Ceilings]:
    """A directed graph with two kinds of edges, and a label that needs both to be seen.

    Every labelled paper is joined to four groups of background papers, each group on a topic of its
    own: one it cites in support, one it cites in dispute, one that cites it in support, one that
    cites it in dispute. Its label is the topic of the first group. Its own features are a
    random topic that tells nothing; the background papers carry no label.

    Why the ceilings hold: the four topics of a paper come in a fair random order and all
    groups are drawn alike, so exchanging two groups of one paper gives an equally likely graph.
    Whoever does not see direction cannot tell "cites" from "is cited" within a kind, so two
    labels are equally likely given all that is seen, the labels of other papers included;
    without kinds likewise; without both, four are.

    Args:
        papers: How many papers carry a label; these are nodes ``0 .. papers - 1``.
        topics: How many classes, four at least.
        group: How many background papers are in a group.
        reuse: In how many groups a background paper stands, on average.
        noise: Standard deviation of what is added to the one-hot topic of every paper.
        seed: The same seed gives the same graph.

    Returns:
        The graph, with ``y = -1`` on background papers and the channels ``KINDS``, and the
        ceilings.
    """
    if topics < len(_ROLES) or papers < 1 or group < 1 or reuse <= 0:
        raise EdgewiseError(
            f"papers={papers}, topics={topics}, group={group}, reuse={reuse} make no graph; "
            f"give at least {len(_ROLES)} topics, and positive numbers"
        )
    generator = np.random.default_rng(seed)
    per_topic = max(group, round(papers * len(_ROLES) * group / (topics * reuse)))
    groups = np.stack([generator.permutation(topics)[: len(_ROLES)] for _ in range(papers)])
    members = np.stack(
        [
            [_drawn(generator, topic, per_topic, group) for topic in topics_met]
            for topics_met in groups.tolist()
        ]
    )  # [papers, four groups, members]
    cites, kind = np.array(_ROLES).T
    neighbour = papers + members.reshape(papers, -1)
    paper = np.broadcast_to(np.arange(papers)[:, None], neighbour.shape)
    outgoing = np.repeat(cites.astype(bool), group)
    source = np.where(outgoing, paper, neighbour).ravel()
    target = np.where(outgoing, neighbour, paper).ravel()
    kinds = np.tile(np.repeat(kind, group), papers)
    order = generator.permutation(len(kinds))  # so that the order of the edges tells nothing
    own_topic = generator.integers(topics, size=papers)
    topic = np.concatenate([own_topic, np.repeat(np.arange(topics), per_topic)])
    label = np.full(len(topic), -1)
    label[:papers] = groups[:, 0]
    x = np.eye(topics)[topic] + noise * generator.standard_normal((len(topic), topics))
    graph = Graph(
        x=torch.from_numpy(x).float(),
        edge_index=torch.from_numpy(np.stack([source, target])[:, order]),
        edge_attr=torch.from_numpy(np.eye(len(KINDS))[kinds[order]]).float(),
        y=torch.from_numpy(label),
        channel_names=KINDS,
        class_names=tuple(f"topic {number}" for number in range(topics)),
    )
    return graph, Ceilings()


def _drawn(generator: np.random.Generator, topic: int, per_topic: int, group: int) -> np.ndarray:
    return topic * per_topic + generator.choice(per_topic, size=group, replace=False)
