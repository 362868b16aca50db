"""Writing an export folder, all files or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.events import Exported, StepSummary
from mtmc_engine.core.measurement import Measurement
from mtmc_engine.core.program import Program
from mtmc_engine.core.task import Task
from mtmc_engine.core.verdict import Verdict
from mtmc_engine.export.companions import benchmark_source, test_source
from mtmc_engine.export.report import report_html
from mtmc_engine.export.standalone import sibling_files, standalone


def export_best(
    task: Task,
    program: Program,
    *,
    plan: Sequence[str],
    steps: Sequence[StepSummary],
    verdict: Verdict | None,
    measurement: Measurement | None,
    folder: Path,
) -> Exported:
    """Writes NAME_mtmc.py, its test, its benchmark and report.html into `folder`.

    NAME is the user's file name, made a Python name.

    plan: phrases of the steps that lead to `program`; none where it is the original.
    measurement: the answer's confirmed one. Existing files of those names are replaced; nothing
    else in the folder is touched.
    Raises UsageError where the folder cannot be written or the user's file is gone.
    """
    check_folder(folder)
    try:
        reference = Path(task.file).read_text()
    except OSError as error:
        raise UsageError(f"{task.file} cannot be read for the export: {error.strerror}") from error
    module = f"{task.module}_mtmc"
    files = {
        f"{module}.py": standalone(task, program, reference, _heading(task, plan, measurement)),
        f"test_{task.module}.py": test_source(task, module, program.source),
        f"bench_{task.module}.py": benchmark_source(task, module),
        "report.html": report_html(
            task, program.source, steps, verdict, measurement if plan else None
        ),
    }
    with tempfile.TemporaryDirectory(dir=folder, prefix=".mtmc-") as staging:
        for name, text in files.items():
            Path(staging, name).write_text(text, encoding="utf-8")
        for name in files:
            os.replace(Path(staging, name), folder / name)
    siblings = _copy_siblings(task, folder)
    return Exported(folder=str(folder), files=(*files, *siblings))


def check_folder(folder: Path) -> None:
    """Makes the folder if need be. Raises UsageError where it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            f"the export folder {folder} cannot be written ({error.strerror}); "
            "choose another with --export DIR"
        ) from error


def _copy_siblings(task: Task, folder: Path) -> list[str]:
    """Copies modules beside the user's file that it imports, unless it is the same folder."""
    root = Path(task.file).parent
    if folder.resolve() == root.resolve():
        return []
    copied = []
    for path in sibling_files(task):
        target = folder / path.relative_to(root)
        if path.name == "__init__.py":
            shutil.copytree(path.parent, target.parent, dirs_exist_ok=True)
        else:
            shutil.copy2(path, target)
        copied.append(str(path.relative_to(root)))
    return copied


def _heading(task: Task, plan: Sequence[str], measurement: Measurement | None) -> str:
    shapes = ", ".join(item.label for item in task.inputs)
    if plan:
        lines = [f"{task.name} at {shapes}, optimised for {task.device.name}."]
        lines += ["", f"Steps: {'; '.join(plan)}."]
    else:
        lines = [f"{task.name} at {shapes}: no step helped on {task.device.name}."]
        lines += ["", "These are the operators of the reference, called as it calls them."]
    if plan and measurement is not None:
        lines.append(_speed(measurement))
    lines += [
        "",
        "`ModelNew` takes the place of `Model`: the same constructor, call and weights."
        if task.form == "module"
        else f"`{task.entry}` takes the place of the reference of that name: the same call.",
        "Calls that were not proven, or that need gradients, run the reference and say so once.",
    ]
    return "\n".join(lines)


def _speed(measurement: Measurement) -> str:
    ratios = [
        f"{ratio.value:.2f}x against {name}"
        + ("" if measurement.kind == "estimated" else f" [{ratio.low:.2f}, {ratio.high:.2f}]")
        for name, ratio in measurement.against.items()
        if name in ("eager", "torch.compile", "original")
    ]
    how = "Estimated, not measured" if measurement.kind == "estimated" else "Measured"
    return f"{how}: {measurement.time_us:.1f} us a call{''.join(', ' + r for r in ratios)}."
