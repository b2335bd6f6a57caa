"""Link recommendation: which products will a customer look at next, and which ones buy?"""

import csv
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import edgewise as ew
from edgewise import runs

draw = random.Random(0)
shelves = ("books", "music", "tools", "games")
nodes = [(f"customer {i}", "customer") for i in range(30)]
nodes += [(f"product {i}", shelves[i % 4]) for i in range(80)]
events = []  # customers look at products of one shelf, mostly, and buy some of these
for when in range(2000):
    customer, product = draw.randrange(30), draw.randrange(80)
    likes = product % 4 == customer % 4
    if likes or draw.random() < 0.03:
        kind = "buys" if likes and draw.random() < 0.4 else "views"
        events.append((f"customer {customer}", f"product {product}", kind, when))

with TemporaryDirectory() as folder:
    tables = [Path(folder, name) for name in ("nodes.csv", "edges.csv", "ids.csv")]
    headers = ("id", "shelf"), ("source", "target", "kind", "when"), ("id",)
    for path, header, rows in zip(tables, headers, (nodes, events, [nodes[3]]), strict=True):
        with path.open("w", newline="") as stream:
            csv.writer(stream).writerows([header, *(row[: len(header)] for row in rows)])

    # The target names the types of links; by time, earlier links train and later ones test.
    settings = {"predict": "links", "target": "kind", "time_column": "when"}
    run = ew.train(tables[:2], Path(folder, "run"), **settings)
    # Mean reciprocal rank among 20 other pairs: 0.17 by chance, 0.67 if shelves of all were known.
    print(run.metrics["test"]["per_target"]["link"]["mrr"] > 0.5)  # True

    runs.predict(run.folder, out=Path(folder, "best.csv"), top=5, ids=tables[2])
    with Path(folder, "best.csv").open() as stream:  # products that it has not seen yet
        found = list(csv.DictReader(stream))
    print(list(found[0]))  # ['source', 'target', 'kind', 'link_probability']
    print(len(found), {row["source"] for row in found})  # 5 {'customer 3'}
