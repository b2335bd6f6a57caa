"""Molecules as inline SVG, drawn by RDKit in the page's colours."""

import re
from typing import Any

from markupsafe import Markup

from edgewise.report.blocks import Drawing
from edgewise.report.theme import COLOUR, in_page_colours

WIDTH, HEIGHT = 260, 180
# Atoms that chemists know by their colour; all others, carbon too, are as the text.
_ATOMS = {7: "series-0", 8: "bad", 9: "series-2", 15: "step-6", 16: "step-6", 17: "series-2"}


def draw_molecule(smiles: str) -> Drawing | None:
    """The structure of a molecule; None where RDKit is missing or does not read it."""
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem.Draw import rdMolDraw2D
    except ImportError:
        return None
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
    if molecule is None or not molecule.GetNumAtoms():
        return None
    drawer = rdMolDraw2D.MolDraw2DSVG(WIDTH, HEIGHT)
    options: Any = drawer.drawOptions()
    options.clearBackground = False
    options.setAtomPalette({-1: _rgb("ink"), **{k: _rgb(name) for k, name in _ATOMS.items()}})
    options.bondLineWidth = 1.4
    options.fixedBondLength = 26
    options.minFontSize = 11
    rdMolDraw2D.PrepareAndDrawMolecule(drawer, molecule)
    drawer.FinishDrawing()
    body = _cleaned(drawer.GetDrawingText())
    return Drawing("molecule", f"0 0 {WIDTH} {HEIGHT}", body, f"Structure of {smiles}")


def _rgb(name: str) -> tuple[float, ...]:
    return tuple(int(COLOUR[name][k : k + 2], 16) / 255 for k in (1, 3, 5))


def _cleaned(text: str) -> Markup:
    body = text[text.index("<!-- END OF HEADER -->") : text.rindex("</svg>")]
    body = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r" (class|id)='[^']*'", "", body)
    body = re.sub(r"\s*</?(rect|title)[^>]*>", "", body)
    return Markup(in_page_colours(body).strip())
