"""Rendered programs run for real under the interpreter and agree with torch in float64."""

import msgspec
import pytest
import pytest_asyncio

from mtmc_engine.core.program import Group, Library, Schedule, Templated
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render
from mtmc_engine.schedule.templates import lowering
from mtmc_engine.system.jobs import Ending, Limits
from tests.schedule.render_cases import CASES

pytestmark = pytest.mark.asyncio(loop_scope="session")
JOBS = "tests.schedule.render_jobs"
# Groups of these cases that may stay library calls.
KEPT = {
    # torch reports a wrong shape for it once sizes are symbols.
    "cross_entropy_none": {"aten.cross_entropy_loss.default"},
    "losses": {"aten.broadcast_tensors.default", "getitem", "aten.div.Tensor"},
    "views": {"aten.chunk.default", "aten.split.Tensor"},
    "itself_transposed": {"aten.add.Tensor", "getitem"},
    "batch_norm_training": {
        "aten._native_batch_norm_legit_functional.default",
        "aten.add.Tensor",
        "getitem",
    },
}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tasks(workshop, tmp_path_factory):
    """Tasks of all cases by name."""
    folder = tmp_path_factory.mktemp("cases")
    files = {}
    for name, source in CASES.items():
        files[name] = folder / f"case_{name}.py"
        files[name].write_text(source)
    result = await workshop.device.run(
        f"{JOBS}:capture", {"files": [str(f) for f in files.values()]}, Limits(wall_s=240)
    )
    assert result.ending is Ending.DONE, result.traceback
    return {name: msgspec.convert(result.value[str(file)], Task) for name, file in files.items()}


def lowered(task):
    """Every group that has a template in that template."""
    groups = []
    for group in root(task.graph).groups:
        form = lowering(task.graph, group.nodes, task.device) if group.region else None
        groups.append(Group(group.region, group.nodes, form or Library()))
    return Schedule(tuple(groups))


async def agrees(workshop, task, schedule, layouts=("contiguous",)):
    """Runs the program and asserts that every output is within its bound."""
    source = render(task, schedule)
    arguments = {"file": task.file, "source": source, "layouts": list(layouts)}
    result = await workshop.interpret.run(f"{JOBS}:run", arguments, Limits(wall_s=120))
    assert result.ending is Ending.DONE, f"{source}\n{result.traceback}\n{result.output}"
    for output in result.value:
        assert output["error"] <= output["bound"], f"{source}\n{output}"


@pytest.mark.parametrize("case", CASES)
async def test_lowered_program_agrees_with_torch(case, tasks, workshop):
    task = tasks[case]
    schedule = lowered(task)
    kept = {
        task.graph.node(name).op
        for group in schedule.groups
        if group.region and isinstance(group.form, Library)
        for name in group.nodes
    }
    assert kept <= KEPT.get(case, set())
    await agrees(workshop, task, schedule, ("contiguous", "transposed", "sliced"))


@pytest.mark.parametrize("case", CASES)
async def test_root_program_agrees_with_torch(case, tasks, workshop):
    await agrees(workshop, tasks[case], root(tasks[case].graph))


def shaped(task, template, params):
    """Every group whose default template is a row template, in this one."""
    return Schedule(
        tuple(
            Group(group.region, group.nodes, Templated(template, params))
            if isinstance(group.form, Templated) and group.form.template.startswith("rows")
            else group
            for group in lowered(task).groups
        )
    )


ROW_FORMS = {
    "tile": ("rows", {"rows_per_program": 4, "warps": 4}),
    "multi_pass": (
        "rows_loop",
        {"block_cols": 32, "rows_per_program": 16, "form": "multi_pass", "warps": 4},
    ),
    "one_pass": (
        "rows_loop",
        {"block_cols": 32, "rows_per_program": 16, "form": "one_pass", "warps": 4},
    ),
}
_CASES_WITH_ROWS = """
rows_1 rows_127 rows_128 rows_many rows_3d inner inner_wide fused_softmax shifted half_rows
integer_rows norms two_results bfloat16 cross_entropy_mean cross_entropy_sum cross_entropy_2d
large_offset infinite
"""
ROW_CASES = _CASES_WITH_ROWS.split()


@pytest.mark.parametrize("form", ROW_FORMS)
@pytest.mark.parametrize("case", ROW_CASES)
async def test_row_forms_agree_with_torch(case, form, tasks, workshop):
    template, params = ROW_FORMS[form]
    await agrees(workshop, tasks[case], shaped(tasks[case], template, params))


COMPILED = [
    *((case, None) for case in ("unary", "activations", "binary", "integers", "linear", "batched")),
    *(
        (case, form)
        for case in ("norms", "inner", "integer_rows", "bfloat16", "cross_entropy_mean")
        for form in ROW_FORMS
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "form"), COMPILED)
async def test_kernels_compile_for_sm_90(case, form, tasks, workshop):
    task = tasks[case]
    schedule = shaped(task, *ROW_FORMS[form]) if form else lowered(task)
    arguments = {"file": task.file, "source": render(task, schedule)}
    result = await workshop.device.run(f"{JOBS}:compile_ahead", arguments, Limits(wall_s=280))
    assert result.ending is Ending.DONE, f"{arguments['source']}\n{result.error}\n{result.output}"
    assert result.value["launches"]
    assert all(launch["spill_bytes"] == 0 for launch in result.value["launches"])


@pytest.mark.parametrize("case", ["binary", "row_vector", "rows_127", "rows_3d", "inner"])
async def test_empty_inputs_agree_with_torch(case, tasks, workshop):
    await agrees(workshop, tasks[case], lowered(tasks[case]), ("empty",))
