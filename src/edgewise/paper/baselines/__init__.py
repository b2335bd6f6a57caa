"""The methods that the paper's Table 3 compares with, as the MoleculeNet benchmark runs them."""
