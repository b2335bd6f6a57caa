"""Molecules: a CSV of SMILES and measurements in, packed batches out, bad rows listed."""

from pathlib import Path
from tempfile import TemporaryDirectory

from edgewise.data.molecule_splits import scaffold_split
from edgewise.data.molecule_tables import read_molecules, read_structures
from edgewise.data.molecules import learn_featurizer
from edgewise.data.packed import pack

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
    table = read_molecules(Path(folder, "molecules.csv"), targets=["logp", "soluble"])
    codes, invalid = read_structures(table, on_invalid="skip")
    for bad in invalid:
        print(f"line {bad.line}: {bad.reason}")  # line 5: not a SMILES that RDKit can parse

    split = scaffold_split(codes.smiles, (0.6, 0.2, 0.2))
    print(split)  # Split(train=4, validation=1, test=1)

    featurizer = learn_featurizer(codes, split.train, threshold=0)  # training rows alone
    molecules = pack(codes, featurizer, table.targets, table.target_names)
    print(featurizer.channel_names[:3])  # ('C-C', 'C-O', 'other pair')

    batch = molecules.batch(split.train)  # one block-diagonal graph
    print(batch.num_graphs, list(batch.x.shape), list(batch.edge_attr.shape))
    # 4 [21, 25] [36, 10]
    print(batch.y[2].tolist())  # [nan, 1.0]
