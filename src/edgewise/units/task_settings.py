"""Settings that only some tasks take, refused once it is known which task it is."""

from edgewise.core.foreign import refuse_foreign
from edgewise.core.settings import Settings
from edgewise.tasks.base import Task


def refuse_task_settings(task: Task, settings: Settings) -> None:
    """Refuse settings that differ from their defaults but mean nothing for the task."""
    refuse_foreign(settings.differences(), "task", task.settings, f"this is {task}")
