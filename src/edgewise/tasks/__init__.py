"""What is predicted: one task, one file, which owns loss, decoding, metrics and columns."""

from edgewise.tasks.base import Prediction, Task, load_task
from edgewise.tasks.columnar import Columnar
from edgewise.tasks.reading import find_task

__all__ = ["Columnar", "Prediction", "Task", "find_task", "load_task"]
