"""Molecules: a CSV of SMILES and measurements in, packed batches out, bad rows listed."""

from pathlib import Path
from tempfile import TemporaryDirectory

from edgewise import ModelSettings
from edgewise.data.featurizers import PaperFeaturizer, pack
from edgewise.data.molecule_splits import scaffold_split
from edgewise.data.molecule_tables import read_molecules, read_structures
from edgewise.tasks import find_task

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
    task, truth = find_task(rows.table, ("logp",))
    codes, invalid = read_structures(rows, on_invalid="skip")
    print(task, truth[codes.rows][2].tolist())  # regression of [logp] [nan]
    print(
        f"line {invalid[0].line}: {invalid[0].reason}"
    )  # line 5: not a SMILES that RDKit can parse

    split = scaffold_split(codes.smiles, (0.6, 0.2, 0.2))
    print(split)  # Split(train=4, validation=1, test=1)
    # What there is to learn about atoms and bonds comes from training rows alone.
    featurizer = PaperFeaturizer.learn(codes, split.train.numpy(), ModelSettings(pair_threshold=0))
    print(featurizer.channel_names[:3])  # ('C-C', 'C-O', 'other pair')

    batch = pack(codes, featurizer).batch(split.train)
    print(batch)  # Batch(nodes=21, edges=36, graphs=4)
    print(list(batch.x.shape), list(batch.edge_attr.shape))  # [21, 25] [36, 10]
