"""``edgewise check``: read data as training would, and say what is in them or what is wrong."""

from pathlib import Path
from typing import Annotated, Any

import typer

from edgewise.cli.console import Console, say
from edgewise.cli.flags import Config, Data, Preset, chosen


def check(
    data: Data,
    preset: Preset = None,
    config: Config = None,
    invalid_file: Annotated[
        Path | None, typer.Option(help="where to list molecules that cannot be read")
    ] = None,
    *,
    settings: dict[str, Any],
) -> None:
    """Read data as training would, and say what is in them or what is wrong."""
    from edgewise.data.molecule_tables import write_invalid
    from edgewise.data.sources import find_source
    from edgewise.runs.folder import check_not_own
    from edgewise.training.expected_cost import expected_cost
    from edgewise.training.portfolio import affordable_regimes
    from edgewise.units.base import resolve

    choice = chosen(preset, config, settings)
    source = find_source(data, choice.unit)
    if invalid_file is not None:
        source.check_not_written(invalid_file, "--invalid-file")
        check_not_own(invalid_file, "--invalid-file")
    unit, resolved = resolve(source, choice.preset, choice.given, also=choice.defaults)
    with Console().working(source.name) as progress:
        source.verify()
        opened = unit.open(source, resolved, progress)
    problem = opened.problem
    for note in opened.notes:
        say(note)
    for line in unit.described_columns(problem):
        say(f"  {line}")
    for notice in opened.notices:
        say(f"notice: {notice}")
    say(f"{problem.task}; {problem.split}")
    costs = [expected_cost(one) for one in affordable_regimes(problem, say).values()]
    known = [cost for cost in costs if cost is not None]
    if known:
        say(str(max(known, key=lambda cost: cost.memory)))
    if opened.invalid and invalid_file is not None:
        write_invalid(invalid_file, opened.invalid)
        say(f"wrote {invalid_file}")
