"""Writing an export folder, all files or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mtmc_engine.capture.source import source_text
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.events import Exported, StepSummary
from mtmc_engine.core.measurement import Measurement
from mtmc_engine.core.task import Task
from mtmc_engine.export.companions import benchmark_source, test_source
from mtmc_engine.export.report import report_html
from mtmc_engine.export.standalone import sibling_files, standalone
from mtmc_engine.plan.tree import TreeNode

# What the exported files import: a module of that name beside them would come first.
HIDDEN_BY = ("torch", "triton", "pytest")


def export_best(
    task: Task,
    *,
    path: Sequence[TreeNode],
    steps: Sequence[StepSummary],
    folder: Path,
) -> Exported:
    """Writes NAME_mtmc.py, its test, its benchmark and report.html into `folder`.

    NAME is the user's file name, made a Python name.

    path: the programs from the original to the answer, whose measurement is the confirmed one; the
    original alone where no step helped. Existing files of those names are replaced; nothing
    else in the folder is touched.
    Raises UsageError where the folder cannot be written or the user's file is gone.
    """
    check_folder(folder)
    reference = source_text(Path(task.file))
    answer = path[-1]
    program, measurement = answer.program, answer.measurement
    plan = [node.action.phrase for node in path if node.action is not None]
    module = f"{task.module}_mtmc"
    files = {
        f"{module}.py": standalone(task, program, reference, _heading(task, plan, measurement)),
        f"test_{task.module}.py": test_source(task, module, program.source),
        f"bench_{task.module}.py": benchmark_source(task, module),
        "report.html": report_html(
            task, path, steps, measurement.kind if measurement else "estimated"
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
    """Makes the folder if need be.

    Raises UsageError where it cannot be written, or where the exported files would import
    something else than torch and triton from it.
    """
    for name in HIDDEN_BY:
        for found in (folder / f"{name}.py", folder / name / "__init__.py"):
            if found.exists():
                raise UsageError(
                    f"{found} would hide {name} from the exported files; "
                    "choose another folder with --export DIR"
                )
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
        lines = [f"{task.name} at {shapes}: no step was kept for {task.device.name}."]
        as_it_was = "This is the user's own program as it was."
        library = "These are the operators of the reference, called as it calls them."
        lines += ["", as_it_was if task.program else library]
    if plan:
        lines.append(_speed(measurement) if measurement else "Not timed: no GPU was present.")
    lines += [
        "",
        _stands_for(task),
        "Calls that were not proven, or that need gradients, run the reference and say so once.",
    ]
    return "\n".join(lines)


def _stands_for(task: Task) -> str:
    if task.launcher and task.launcher != "ModelNew":
        return f"`{task.launcher}` computes what `{task.entry}` does: the same call."
    if task.form == "module":
        return (
            f"`ModelNew` takes the place of `{task.entry}`: the same constructor, call and weights."
        )
    return f"`{task.defines}` takes the place of the reference of that name: the same call."


def _speed(measurement: Measurement) -> str:
    ratios = [
        f"{ratio.value:.2f}x against {'the ' if name == 'original' else ''}{name}"
        + ("" if measurement.kind == "estimated" else f" [{ratio.low:.2f}, {ratio.high:.2f}]")
        for name, ratio in measurement.against.items()
        if name in ("eager", "torch.compile", "original")
    ]
    how = {
        "measured": "Measured",
        "replayed": f"Not measured here, {measurement.method}",
        "estimated": "Estimated, not measured",
    }[measurement.kind]
    return f"{how}: {measurement.time_us:.1f} us a call{''.join(', ' + r for r in ratios)}."
