"""Molecules: a CSV of SMILES and measurements in, batches of graphs out, invalid rows listed."""

from pathlib import Path
from tempfile import TemporaryDirectory

import edgewise as ew
from edgewise.data.featurizers import PaperFeaturizer, pack
from edgewise.data.molecule_splits import scaffold_split
from edgewise.data.molecule_tables import read_molecules, read_structures

CSV = """name,smiles,logp,soluble
ethanol,CCO,-0.31,1
"acid, benzoic",OC(=O)c1ccccc1,1.87,
table salt,[Na+].[Cl-],,1
a typing error,CC(C,0.5,0
toluene,Cc1ccccc1,2.73,0
pyridine,c1ccncc1,0.65,1
cyclohexane,C1CCCCC1,3.44,0
"""

with TemporaryDirectory() as folder:
    Path(folder, "molecules.csv").write_text(CSV)
    rows = read_molecules(Path(folder, "molecules.csv"))
    codes, invalid = read_structures(rows, on_invalid="skip")
    for row in invalid:
        print(f"line {row.line}: {row.reason}")  # line 5: not a SMILES that RDKit can parse

    split = scaffold_split(codes.smiles, (0.6, 0.2, 0.2))
    print(split)  # Split(train=4, validation=1, test=1)

    settings = ew.make_settings("graph", directed=False, pair_threshold=0).model
    featurizer = PaperFeaturizer.learn(codes, split.train.numpy(), settings)  # training rows alone
    print(featurizer.channel_names[:3])  # ('C-C', 'C-O', 'other pair')

    molecules = pack(codes, featurizer)  # a GraphSet: flat arrays with offsets
    batch = molecules.batch(split.train)  # one block-diagonal graph
    print(batch, list(batch.edge_attr.shape))  # Batch(nodes=21, edges=36, graphs=4) [36, 10]
    print(rows.table.numbers("logp")[codes.rows][2])  # nan
