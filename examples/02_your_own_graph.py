"""Your own graph: two tables in, a checked graph out, and new tables read the same way."""

from pathlib import Path
from tempfile import TemporaryDirectory

from edgewise.data.graph_files import read_folder
from edgewise.data.graph_reader import load_graph_reader
from edgewise.data.graph_tables import learn_graph_reader
from edgewise.data.splits import random_split

NODES = """id,employees,country,about,risk
acme,120,DE,"makes anvils, rockets and magnets",low
bolt,15,FR,makes bolts and nuts and washers,high
corp,900,DE,owns firms that make other things,low
dyna,40,IT,rockets for those who need them,
"""
EDGES = """source,target,amount,kind
acme,bolt,1000,pays
corp,acme,51,owns
dyna,acme,300,pays
bolt,dyna,-20,pays
"""

with TemporaryDirectory() as folder:
    Path(folder, "nodes.csv").write_text(NODES)
    Path(folder, "edges.csv").write_text(EDGES)
    nodes, edges = read_folder(folder)  # CSV, TSV or Parquet

    reader = learn_graph_reader(nodes, edges, label="risk")
    graph, notes = reader.read(nodes, edges)
    print(graph)  # Graph(nodes=4, edges=4, channels=4, features=23, classes=2)
    print(graph.channel_names)  # ('amount +', 'amount -', 'kind=owns', 'kind=pays')
    print(notes.unlabelled)  # 1

    labelled = (graph.y >= 0).nonzero()[:, 0]
    print(random_split(labelled, "dense", seed=0))  # Split(train=2, validation=1, test=0)

    reader.save(Path(folder, "reader.json"))  # to read new tables in the same way
    again, _ = load_graph_reader(Path(folder, "reader.json")).read(nodes, edges)
    print(bool((again.x == graph.x).all()))  # True
