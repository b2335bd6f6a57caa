"""Directed citation networks, read from the original LINQS text files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from edgewise.core.errors import EdgewiseError
from edgewise.data.catalogue import dataset
from edgewise.data.store import StoredFile, open_files
from edgewise.graphs.graph import Graph

# What the PubMed file numbers 1, 2, 3, by the README that comes with it.
_DIABETES = {"1": "experimental", "2": "type 1", "3": "type 2"}


@dataclass(frozen=True)
class CitationNotes:
    """What stood in the files and what became of it."""

    lines: int  # citation lines in the file
    unknown: tuple[int, ...]  # line numbers that name a paper without features: dropped
    self_citations: tuple[int, ...]  # line numbers: dropped
    reciprocal: int  # pairs of papers that cite each other
    isolated: int  # papers left without a citation either way
    edition: str  # how the node file differs from the original, if it does

    def __str__(self) -> str:
        text = (
            f"{self.lines:,} citations read; dropped {len(self.unknown)} that name a paper without "
            f"features and {len(self.self_citations)} self citations; {self.reciprocal} pairs "
            f"cite each other, {self.isolated} papers are isolated"
        )
        return f"{text}; node file {self.edition}" if self.edition else text


def load_citation(name: str) -> tuple[Graph, CitationNotes]:
    """Load ``cora``, ``citeseer`` or ``pubmed``, fetched and verified first if need be.

    Returns:
        The graph, in which ``edge_index[0]`` cites ``edge_index[1]``, and notes on what was
        left out: citations of papers without features, and of a paper by itself.

    Example:
        >>> graph, notes = load_citation("cora")
        >>> graph
        Graph(nodes=2708, edges=5429, channels=1, features=1433, classes=7)
    """
    data = dataset(name)
    if data.kind != "citation":
        raise EdgewiseError(
            f"{data.name} holds molecules, not a citation network; those are cora, citeseer and "
            "pubmed (molecules: edgewise.data.molecule_tables.read_named)"
        )
    files = open_files(data.name)
    content, cites = files["content"], files["cites"]
    if data.name == "pubmed":
        nodes = parse_pubmed_nodes(content.text, content.path)
        pairs = parse_pubmed_cites(cites.text, cites.path)
        header = 2
    else:
        nodes = parse_content(content.data, content.path)
        pairs = parse_cites(cites.text, cites.path)
        header = 0
    return _assemble(nodes, pairs, header, content)


@dataclass(frozen=True)
class Papers:
    """The papers of a node file, in its order."""

    ids: tuple[str, ...]
    features: np.ndarray  # [papers, words], float32
    labels: tuple[str, ...]


def parse_content(data: bytes, path: Path) -> Papers:
    """Read lines of ``id <tab> 0/1 ... <tab> label``, every line with as many words."""
    ids, labels = [], []
    rows: list[np.ndarray] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        paper = _content_row(line)
        if paper is None or (rows and len(paper[1]) != len(rows[0])):
            count = f"{len(rows[0])} words" if rows else "words"
            raise EdgewiseError(
                f"{path}:{number}: expected an id, {count} that are 0 or 1, and a label, "
                f"separated by tabs, got {line[:40].decode(errors='replace')!r}"
            )
        ids.append(paper[0])
        rows.append(paper[1])
        labels.append(paper[2])
    if not rows:
        raise EdgewiseError(f"{path} is empty; expected one paper per line")
    return Papers(tuple(ids), np.stack(rows).astype(np.float32), tuple(labels))


def _content_row(line: bytes) -> tuple[str, np.ndarray, str] | None:
    first, last = line.find(b"\t"), line.rfind(b"\t")
    # Single digits and single tabs: the words are every second byte between id and label.
    between = np.frombuffer(line, np.uint8)[first + 1 : last]
    words, tabs = between[::2] - ord("0"), between[1::2]
    if first >= last or (words > 1).any() or (tabs != ord("\t")).any():
        return None
    try:
        return line[:first].decode(), words, line[last + 1 :].strip().decode()
    except UnicodeDecodeError:
        return None


def parse_cites(text: str, path: Path) -> list[tuple[str, str]]:
    """Read lines of ``cited <tab> citing`` into (citing, cited).

    The file points against the arrow of citation; the order is turned here, once.
    """
    pairs = []
    for number, line in enumerate(text.splitlines(), start=1):
        match line.split():
            case [cited, citing]:
                pairs.append((citing, cited))
            case _:
                raise EdgewiseError(f"{path}:{number}: expected 'cited citing', got {line!r}")
    return pairs


def parse_pubmed_nodes(text: str, path: Path) -> Papers:
    """Read ``id label=k word=value ... summary=...`` below two lines that name the words."""
    lines = text.splitlines()
    header = lines[1].split("\t") if len(lines) > 1 else []
    words = [field.split(":")[1] for field in header if field.startswith("numeric:")]
    if not words:
        raise EdgewiseError(f"{path}:2: expected fields 'numeric:<word>:0.0' that name the words")
    column = {word: i for i, word in enumerate(words)}
    features = np.zeros((len(lines) - 2, len(words)), dtype=np.float32)
    ids, labels = [], []
    for row, line in enumerate(lines[2:]):
        fields = line.split("\t")
        try:
            ids.append(fields[0])
            labels.append(fields[1].removeprefix("label="))
            for field in fields[2:]:
                word, _, value = field.partition("=")
                if word != "summary":
                    features[row, column[word]] = float(value)
        except (IndexError, KeyError, ValueError) as error:
            raise EdgewiseError(
                f"{path}:{row + 3}: expected 'id label=k word=value ...' ({error}), "
                f"got {line[:40]!r}"
            ) from error
    return Papers(tuple(ids), features, tuple(labels))


def parse_pubmed_cites(text: str, path: Path) -> list[tuple[str, str]]:
    """Read ``number paper:A | paper:B``, where A cites B, below two header lines."""
    pairs = []
    for number, line in enumerate(text.splitlines()[2:], start=3):
        match line.split("\t"):
            case [_, citing, "|", cited] if citing[:6] == cited[:6] == "paper:":
                pairs.append((citing[6:], cited[6:]))
            case _:
                raise EdgewiseError(
                    f"{path}:{number}: expected '<number> paper:A | paper:B', got {line!r}"
                )
    return pairs


def _assemble(
    nodes: Papers, pairs: Sequence[tuple[str, str]], header: int, content: StoredFile
) -> tuple[Graph, CitationNotes]:
    position = {paper: i for i, paper in enumerate(nodes.ids)}
    kept, unknown, to_self = [], [], []
    for number, (citing, cited) in enumerate(pairs, start=1 + header):
        if citing not in position or cited not in position:
            unknown.append(number)
        elif citing == cited:
            to_self.append(number)
        else:
            kept.append((position[citing], position[cited]))
    classes = sorted(set(nodes.labels))
    code = {label: i for i, label in enumerate(classes)}
    graph = Graph(
        x=torch.from_numpy(nodes.features),
        edge_index=torch.tensor(kept, dtype=torch.long).reshape(-1, 2).T.contiguous(),
        y=torch.tensor([code[label] for label in nodes.labels]),
        node_ids=nodes.ids,
        channel_names=("cites",),
        class_names=tuple(_DIABETES.get(label, label) for label in classes),
    )
    both_ways = {(a, b) for a, b in kept if a < b} & {(b, a) for a, b in kept if b < a}
    linked = len(torch.unique(graph.edge_index))
    notes = CitationNotes(
        lines=len(pairs),
        unknown=tuple(unknown),
        self_citations=tuple(to_self),
        reciprocal=len(both_ways),
        isolated=graph.num_nodes - linked,
        edition=content.edition.note,
    )
    return graph, notes
