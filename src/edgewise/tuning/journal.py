"""The journal of a search: lines of JSON from Optuna, checked before it reads them again."""

import json
import os
from pathlib import Path
from typing import Any

import optuna
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from edgewise.core.errors import EdgewiseError
from edgewise.core.schema import LARGEST, Maybe, mismatch, parse_json

_VALUES = (None, [float])
_ATTRIBUTES = {"epochs": Maybe(int), "seconds": Maybe(float), "reason": Maybe(str)}
_FIXED = {"fixed_params": Maybe({str: (str, bool, float)})}
# Optuna's operations by their codes, those that a search writes.
_OPERATIONS: dict[int, Any] = {
    0: {"study_name": str, "directions": [int]},
    4: {
        **{"study_id": int, "datetime_start": (str, None), "state": Maybe(int)},
        **{"value": Maybe((float, None)), "values": Maybe(_VALUES), "params": Maybe({str: float})},
        **{"distributions": Maybe({str: str}), "intermediate_values": Maybe({str: float})},
        **{"user_attrs": Maybe(_ATTRIBUTES), "system_attrs": Maybe(_FIXED)},
    },
    5: {"trial_id": int, "param_name": str, "param_value_internal": float, "distribution": str},
    6: {
        **{"trial_id": int, "state": int, "values": _VALUES},
        **{"datetime_start": Maybe(str), "datetime_complete": Maybe(str)},
    },
    7: {"trial_id": int, "step": int, "intermediate_value": float},
    8: {"trial_id": int, "user_attr": _ATTRIBUTES},
    9: {"trial_id": int, "system_attr": _FIXED},
}


class Journal(JournalFileBackend):
    """Lines of JSON that only their own process writes, see :func:`edgewise.core.files.alone_in`.

    Optuna's own lock files outlive a killed process, and its waiting for the disk at every line
    would take as long as an epoch. What a killed process wrote is in the file without it.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        with self.path.open("ab") as stream:
            stream.write("".join(json.dumps(log) + "\n" for log in logs).encode("utf-8"))


def mend_journal(path: Path) -> None:
    """Cut off a last line that a kill left half-written, and refuse lines of another form."""
    if path.stat().st_size > LARGEST:
        raise EdgewiseError(f"it holds more than {LARGEST // 2**20} MB")
    whole, end, _ = path.read_bytes().rpartition(b"\n")
    for number, line in enumerate(whole.split(b"\n") if whole else (), start=1):
        try:
            _check_line(line.decode("utf-8"))
        except ValueError as error:
            raise EdgewiseError(f"line {number}: {error}") from error
    os.truncate(path, len(whole + end))  # a line that was cut short would spoil the next


def _check_line(line: str) -> None:
    content = parse_json(line, {"op_code": int, "worker_id": str})
    if content["op_code"] not in _OPERATIONS:
        raise EdgewiseError(f"there is no operation {content['op_code']}")
    fault = mismatch(content, _OPERATIONS[content["op_code"]])
    if fault:
        raise EdgewiseError(fault)
    for text in (content.get("distribution"), *(content.get("distributions") or {}).values()):
        if text is not None:
            parse_json(text, {"name": str, "attributes": {str: object}})


def check_study(study: optuna.Study, direction: str) -> None:
    """Refuse trials that no search makes; each line by itself may be in order."""
    if study.direction.name.lower() != direction:
        raise EdgewiseError(f"it is a search that would {study.direction.name.lower()}")
    for trial in study.get_trials(deepcopy=False):
        if trial.state in (TrialState.COMPLETE, TrialState.PRUNED):
            # Optuna checks what it is given here, but not what it reads.
            optuna.trial.create_trial(
                state=trial.state,
                values=trial.values,
                params=trial.params,
                distributions=trial.distributions,
                intermediate_values=trial.intermediate_values,
            )
