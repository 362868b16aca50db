"""Captures the family cases and runs their rendered programs in the workshop's children."""

import msgspec

from mtmc_engine.core.program import Group, Library, Schedule
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render
from mtmc_engine.schedule.templates import lowering
from mtmc_engine.system.jobs import Ending, Limits

JOBS = "tests.schedule.render_jobs"


async def captured(workshop, folder, cases):
    """Tasks of user files, by case."""
    files = {name: folder / f"case_{name}.py" for name in cases}
    for name, source in cases.items():
        files[name].write_text(source)
    return await captured_files(workshop, {name: str(file) for name, file in files.items()})


async def captured_files(workshop, files):
    """Tasks of files, by name."""
    result = await workshop.device.run(
        f"{JOBS}:capture", {"files": list(files.values())}, Limits(wall_s=280)
    )
    assert result.ending is Ending.DONE, result.traceback
    return {name: msgspec.convert(result.value[file], Task) for name, file in files.items()}


def lowered(task):
    """Every group that has a template in that template."""
    return Schedule(
        tuple(
            Group(
                group.region,
                group.nodes,
                (lowering(task.graph, group.nodes, task.device) if group.region else None)
                or Library(),
            )
            for group in root(task.graph).groups
        )
    )


async def agrees(workshop, task, schedule, layouts=("contiguous",)):
    """Runs the program and asserts that every output is within its bound."""
    source = render(task, schedule)
    arguments = {"file": task.file, "source": source, "layouts": list(layouts)}
    result = await workshop.interpret.run(f"{JOBS}:run", arguments, Limits(wall_s=120))
    assert result.ending is Ending.DONE, f"{source}\n{result.traceback}\n{result.output}"
    for output in result.value:
        assert output["error"] <= output["bound"], f"{source}\n{output}"
