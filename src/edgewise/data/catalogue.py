"""What data sets exist: their files, checksums, public addresses, and what to cite."""

from dataclasses import dataclass

from edgewise.core.errors import EdgewiseError

_LINQS = "https://linqs-data.soe.ucsc.edu/public"
_DEEPCHEM = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets"
_YANDEX = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
_NO_LICENCE = "its authors state no licence"
_OF_ORIGIN = "the terms of its origin apply"
_SEN = "Sen et al., Collective classification in network data, AI Magazine 29(3), 2008"
_NAMATA = "Namata et al., Query-driven active surveying for collective classification, MLG 2012"
_TU = "https://www.chrsmrrs.com/graphkerneldatasets"
_MORRIS = "Morris et al., TUDataset, ICML workshop on graph representation learning, 2020"
_PLATONOV = (
    "Platonov et al., A critical look at the evaluation of GNNs under heterophily, ICLR 2023"
)
_KUMAR = "Kumar et al., Edge weight prediction in weighted signed networks, ICDM 2016"
_WU = "Wu et al., MoleculeNet, Chemical Science 9, 2018"


@dataclass(frozen=True)
class Edition:
    """One accepted form of a file. Its checksum is ``sha256:...`` or ``git:...`` (a blob id)."""

    path: str  # below the cache or the mirror
    checksum: str
    size: int | None = None  # bytes
    note: str = ""


@dataclass(frozen=True)
class DataFile:
    """A file of a data set, known to the loaders by its role; the first edition is preferred."""

    role: str
    editions: tuple[Edition, ...]


@dataclass(frozen=True)
class Dataset:
    """One data set: everything about it that is known before a byte is read."""

    name: str
    kind: str  # the form of its files, one of edgewise.data.sources.FORMS
    summary: str
    files: tuple[DataFile, ...]
    addresses: tuple[str, ...]
    cite: str
    licence: str
    smiles: str = ""  # molecules: the columns of the table
    targets: tuple[str, ...] = ()  # columns to predict; of ratings, the first is the usual one

    @property
    def size(self) -> int:
        """Bytes of its files, uncompressed."""
        return sum(next(e.size for e in f.editions if e.size is not None) for f in self.files)


def _file(role: str, path: str, sha256: str, size: int, *others: Edition) -> DataFile:
    return DataFile(role, (Edition(path, f"sha256:{sha256}", size), *others))


def _tu(name: str, role: str, sha256: str, size: int) -> DataFile:
    return _file(role, f"tu/{name}/{name}_{role}.txt", sha256, size)


CATALOGUE = {
    data.name: data
    for data in (
        Dataset(
            "cora",
            "citation",
            "2,708 papers on machine learning, 1,433 words, 7 classes, 5,429 directed citations",
            (
                _file(
                    "content",
                    "cora/cora.content",
                    "b8ebed0fd45e53995abafd1b70cf6a9fcc8f86abc5826d69b97fe6ca46e9c8ee",
                    7823427,
                ),
                _file(
                    "cites",
                    "cora/cora.cites",
                    "ec1a372391b7f0f60a6aff0084e8abd8f19f0faa7e1f2441a41c492042d5945e",
                    69928,
                ),
            ),
            (
                f"{_LINQS}/lbc/cora.tgz",
                f"{_LINQS}/datasets/cora/cora.tar.gz",
                f"{_LINQS}/datasets/cora/cora.zip",
            ),
            _SEN,
            licence=_NO_LICENCE,
        ),
        Dataset(
            "citeseer",
            "citation",
            "3,312 papers on computer science, 3,703 words, 6 classes, 4,591 directed citations",
            (
                _file(
                    "content",
                    "citeseer/citeseer.content",
                    "de4a3ca98626d77193f27af5c976b981a56080e6273c4e1c05764a95d2143ff8",
                    24589190,
                ),
                _file(
                    "cites",
                    "citeseer/citeseer.cites",
                    "cd9730630eaaa745058c2cd2cce6b9afb79ca71278a479aebec55f4cf5eb7f30",
                    137062,
                ),
            ),
            (
                f"{_LINQS}/lbc/citeseer.tgz",
                f"{_LINQS}/datasets/citeseer-doc-classification/citeseer-doc-classification.tar.gz",
                f"{_LINQS}/datasets/citeseer-doc-classification/citeseer-doc-classification.zip",
            ),
            _SEN,
            licence=_NO_LICENCE,
        ),
        Dataset(
            "pubmed",
            "citation",
            "19,717 papers on diabetes, 500 TF-IDF words, 3 classes, 44,335 directed citations",
            (
                DataFile(
                    "content",
                    (
                        Edition(
                            "pubmed/Pubmed-Diabetes.NODE.paper.tab",
                            "git:99c58208ab8447cee8504f7c9f832112b1fda1e7",
                        ),
                        Edition(
                            "pubmed/Pubmed-Diabetes.NODE.paper.derived.tab",
                            "sha256:17cde13f017050efd72293b7dada3bdbb1742f3eb0c38fc0f509ad253f2f9430",
                            23897332,
                            "rebuilt from the Planetoid copy: float32 values, words without their "
                            "names, and the ids of 3,214 exact twins may be exchanged",
                        ),
                    ),
                ),
                _file(
                    "cites",
                    "pubmed/Pubmed-Diabetes.DIRECTED.cites.tab",
                    "5f8d710649f2808b2ffe73dfe9ab9ce7b06da2ccfe3fd3d6660520a8e4ae2141",
                    1639007,
                ),
            ),
            (
                f"{_LINQS}/Pubmed-Diabetes.tgz",
                f"{_LINQS}/datasets/pubmed-diabetes/pubmed-diabetes.tar.gz",
                f"{_LINQS}/datasets/pubmed-diabetes/pubmed-diabetes.zip",
            ),
            _NAMATA,
            licence=_NO_LICENCE,
        ),
        Dataset(
            "tox21",
            "molecules",
            "7,831 compounds, 12 toxicity assays with gaps",
            (
                _file(
                    "table",
                    "tox21/tox21.csv",
                    "7d7e7facd853a63e79ddce4e9c3fcb7a0d83a1c300b603031c0f2c64fbe77761",
                    525119,
                ),
            ),
            (f"{_DEEPCHEM}/tox21.csv.gz", "https://data.dgl.ai/dataset/tox21.csv.gz"),
            f"{_WU}; NIH Tox21 challenge",
            licence=_OF_ORIGIN,
            smiles="smiles",
            targets=(
                *("NR-AR", "NR-AR-LBD", "NR-AhR", "NR-Aromatase", "NR-ER", "NR-ER-LBD"),
                *("NR-PPAR-gamma", "SR-ARE", "SR-ATAD5", "SR-HSE", "SR-MMP", "SR-p53"),
            ),
        ),
        Dataset(
            "lipo",
            "molecules",
            "4,200 compounds, octanol/water distribution (logD at pH 7.4)",
            (
                _file(
                    "table",
                    "lipo/Lipophilicity.csv",
                    "aed41590cb30609d51d8e08ad3ff06495a76e80e211358801f596b10da69bacd",
                    282606,
                    Edition(
                        "lipo/Lipophilicity.exp-smiles.csv",
                        "sha256:c5eff4dfca42f82d02b0be9bf67253a9f671de897063c12a2613c89bcac5a11c",
                        223301,
                        "without the ChEMBL ids, which this source leaves out",
                    ),
                ),
            ),
            (f"{_DEEPCHEM}/Lipophilicity.csv",),
            f"{_WU}; ChEMBL document CHEMBL3301361",
            licence=_OF_ORIGIN,
            smiles="smiles",
            targets=("exp",),
        ),
        Dataset(
            "freesolv",
            "molecules",
            "642 compounds, hydration free energy in kcal/mol",
            (
                _file(
                    "table",
                    "freesolv/SAMPL.csv",
                    "ab5895d914ee87cb563bd7b9611e869527bba45bec6b014d34dc495a0f9dcb72",
                    32060,
                ),
            ),
            (
                f"{_DEEPCHEM}/SAMPL.csv",
                "https://s3-us-west-1.amazonaws.com/deepchem.io/datasets/molnet_publish/FreeSolv.zip",
            ),
            f"{_WU}; Mobley lab, FreeSolv",
            licence=_OF_ORIGIN,
            smiles="smiles",
            targets=("expt",),
        ),
        Dataset(
            "mutagenicity",
            "tu",
            "4,337 compounds, mutagenic or not, 14 elements, 3 kinds of bonds",
            (
                _tu(
                    "Mutagenicity",
                    "A",
                    "ae85e22b4b898ebd819d2ed3adc8f06a7bf1cda746b333086472d19b36711145",
                    3554144,
                ),
                _tu(
                    "Mutagenicity",
                    "edge_labels",
                    "bf8e783386ac22e6033bbce56d765c0a4336649bd590a6f1e467b27b549f2114",
                    533788,
                ),
                _tu(
                    "Mutagenicity",
                    "graph_indicator",
                    "88b2d83ff10fad75b3280654061e965976f74e75620058c371ed23567236b4bc",
                    622816,
                ),
                _tu(
                    "Mutagenicity",
                    "graph_labels",
                    "b604c7dcbfdf89193901e32abdcbf9b5b92137414ce22231f00ed65d48ec48f9",
                    8674,
                ),
                _tu(
                    "Mutagenicity",
                    "node_labels",
                    "b429ec418c831d02dc3088b2fe08d11214627850d2bbdacfa9797c0510e70ae7",
                    263105,
                ),
            ),
            (f"{_TU}/Mutagenicity.zip",),
            f"{_MORRIS}; Kazius et al., Derivation and validation of toxicophores for "
            "mutagenicity prediction, Journal of Medicinal Chemistry 48, 2005",
            licence=_OF_ORIGIN,
        ),
        Dataset(
            "proteins",
            "tu",
            "1,113 proteins, enzymes or not, nodes of 3 kinds with a length",
            (
                _tu(
                    "PROTEINS",
                    "A",
                    "4c4b33e272fc95cac6d27ed6d5d12b9a852c8610e91fff59f8f0dbdd5a20df67",
                    2022990,
                ),
                _tu(
                    "PROTEINS",
                    "graph_indicator",
                    "8d4ff1e852a5c28561e9bffb44cf9490bc552b13a3b6156dd12dc7f44e9afc4a",
                    169673,
                ),
                _tu(
                    "PROTEINS",
                    "graph_labels",
                    "c0ef9810c440775252872318d0c8adc385588e14bc4c47a2c34aa96ee3c7cdcd",
                    2226,
                ),
                _tu(
                    "PROTEINS",
                    "node_attributes",
                    "54eef829abb37e458a5fbf3a3c581e48e5810e220463c2cd951856b9ceb08f07",
                    478190,
                ),
                _tu(
                    "PROTEINS",
                    "node_labels",
                    "f758e8ad3d6e3c026b50833d75f6f90735b94eb3345e4243707f495ca8afea8d",
                    86942,
                ),
            ),
            (f"{_TU}/PROTEINS.zip",),
            f"{_MORRIS}; Borgwardt et al., Protein function prediction via graph kernels, "
            "Bioinformatics 21, 2005",
            licence=_OF_ORIGIN,
        ),
        Dataset(
            "squirrel",
            "heterophilous",
            "2,223 pages of Wikipedia, 2,089 nouns, 5 classes of traffic, 65,718 directed links",
            (
                _file(
                    "graph",
                    "heterophilous/squirrel_filtered_directed.npz",
                    "0526e53252f0b052124f7390829c32e923d432acaf64206191a1144a07b39620",
                    249855,
                ),
            ),
            (f"{_YANDEX}/squirrel_filtered_directed.npz",),
            _PLATONOV,
            licence=_NO_LICENCE,
        ),
        Dataset(
            "minesweeper",
            "heterophilous",
            "10,000 cells of a grid, 7 features, mine or not, 39,402 undirected edges",
            (
                _file(
                    "graph",
                    "heterophilous/minesweeper.npz",
                    "e664c8dacf1e8ac466c2c09ed4b237bd2c5541f47a6eae9c6092cb87f16412b3",
                    135045,
                ),
            ),
            (f"{_YANDEX}/minesweeper.npz",),
            _PLATONOV,
            licence=_NO_LICENCE,
        ),
        Dataset(
            "bitcoin-otc",
            "ratings",
            "35,592 ratings of one another by 5,881 traders, from -10 to 10, with times",
            (
                _file(
                    "ratings",
                    "bitcoin-otc/soc-sign-bitcoinotc.csv",
                    "22b08170d37407697764acabc1b8b361ffad2d71c7c9dc002d3702548c0ca8e1",
                    837130,
                ),
            ),
            ("https://snap.stanford.edu/data/soc-sign-bitcoinotc.csv.gz",),
            _KUMAR,
            licence=_NO_LICENCE,
            targets=("negative", "rating"),
        ),
    )
}


def dataset(name: str) -> Dataset:
    """The record of a data set, by name in any case."""
    found = CATALOGUE.get(name.lower())
    if found is None:
        raise EdgewiseError(
            f"there is no data set named {name!r}; the names are {', '.join(CATALOGUE)}"
        )
    return found
