"""Commands in processes of their own, forked from one that has imported what they need.

A command takes a fifth of a second so, where importing torch alone takes two.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_IMPORTED = (
    "edgewise.cli.app",
    "edgewise.runs",
    "edgewise.tuning",
    "edgewise.estimators",
    "edgewise.paper.tables",
    "edgewise.units.node",
    "edgewise.units.graph",
    "edgewise.training.predictor",
    "matplotlib.figure",
    "numba",
    "optuna",
    "rdkit.Chem",
    "sklearn.decomposition",
    "sklearn.ensemble",
)


def edgewise(*arguments, cwd=None, **environment):
    """A command and its outcome; with variables, which may count at import, in a new process."""
    command = [sys.executable, "-m", "edgewise", *map(str, arguments)]
    if environment or sys.platform == "win32":
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | environment,
            cwd=cwd,
        )
    return in_fork(_command_line, command[3:], cwd=cwd)


def python(code, *arguments, cwd=None):
    """A program and its outcome."""
    if sys.platform == "win32":
        command = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    return in_fork(_program, [code, *map(str, arguments)], cwd=cwd)


def forking():
    """What starts processes that have imported the package; on Windows, ones that must do so."""
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED))
    return context


def in_fork(call, argument, cwd=None):
    context = forking()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("out", "err")]
        place = Path(cwd or Path.cwd())
        told = (call, argument, place, files, dict(os.environ))
        process = context.Process(target=_begin, args=told)
        process.start()
        process.join()
        printed = [path.read_text() for path in files]
        return subprocess.CompletedProcess(argument, process.exitcode, *printed)


def _begin(call, argument, place, files, environment):
    for number, path in enumerate(files, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(place)
    call(argument)


def _command_line(arguments):
    from edgewise.cli import main

    sys.argv = ["edgewise", *arguments]
    main()


def _program(words):
    code, *arguments = words
    sys.argv = ["-c", *arguments]
    sys.path.insert(0, "")
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
