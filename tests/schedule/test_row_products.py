"""Reductions, norms and softmax of a product's rows in the kernel that computes the product."""

import pytest
import pytest_asyncio

from mtmc_engine.core.program import Group
from mtmc_engine.schedule.cost import cost_of, estimate_us
from mtmc_engine.schedule.legal import apply_action, legal_actions
from mtmc_engine.schedule.regions import root, schedule_of
from mtmc_engine.schedule.render import render
from mtmc_engine.schedule.templates import lowering, variants
from mtmc_engine.system.jobs import Ending, Limits
from tests.schedule.family_runs import JOBS, agrees, captured, captured_files
from tests.schedule.render_cases import R, module
from tests.schedule.row_product_cases import CASES, DECLARED, SWEPT, after_linear
from tests.schedule.test_render_golden import SAMPLES, matches

pytestmark = pytest.mark.asyncio(loop_scope="session")
# What has no such form: rows too long, reductions of columns, of parts of a row and of everything.
REFUSED = {
    "long_rows": module("return (x @ y).softmax(-1)", {"x": f"{R}(70, 40)", "y": f"{R}(40, 513)"}),
    "columns": after_linear("y.sum(0)"),
    "everything": after_linear("y.sum()"),
    "parts": after_linear("y.view(70, 9, 5).sum(-1)"),
    "scan": after_linear("y.cumsum(-1)"),
}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tasks(workshop, tmp_path_factory):
    folder = tmp_path_factory.mktemp("row_products")
    long_rows = {f"swept_{name}": source for name, source in SWEPT.items()}
    return await captured(workshop, folder, {**CASES, **long_rows, **DECLARED, **REFUSED})


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def router(workshop):
    files = {"router": str(SAMPLES / "suite" / "chain_linear_router.py")}
    return (await captured_files(workshop, files))["router"]


def nodes_of(task):
    """Every operator of the task as one group."""
    named = {name for group in root(task.graph).groups if group.region for name in group.nodes}
    return tuple(node.name for node in task.graph.nodes if node.name in named)


def one_kernel(task, **params):
    """The whole task in one product."""
    nodes = nodes_of(task)
    form = lowering(task.graph, nodes, task.device)
    assert form is not None
    assert form.template == "matmul"
    return schedule_of(task.graph, [Group("r1", nodes, form.with_params(**params))])


@pytest.mark.parametrize("case", CASES)
async def test_rows_of_a_product_agree_with_torch(case, tasks, workshop):
    task = tasks[case]
    await agrees(workshop, task, one_kernel(task), ("contiguous", "transposed", "sliced"))


@pytest.mark.parametrize("case", SWEPT)
async def test_rows_in_a_sweep_agree_with_torch(case, tasks, workshop):
    task = tasks[f"swept_{case}"]
    schedule = one_kernel(task, block_n=64)
    assert "for start in range(0, N, BLOCK_N):" in render(task, schedule)
    await agrees(workshop, task, schedule, ("contiguous", "transposed", "sliced"))


@pytest.mark.parametrize("case", ["relu_sum", "softmax", "swept_sum", "swept_logsumexp"])
async def test_no_rows_agree_with_torch(case, tasks, workshop):
    await agrees(workshop, tasks[case], one_kernel(tasks[case]), ("empty",))


@pytest.mark.parametrize("case", REFUSED)
async def test_other_reductions_stay_apart(case, tasks):
    assert lowering(tasks[case].graph, nodes_of(tasks[case]), tasks[case].device) is None


async def test_tiles_fit_the_card(tasks):
    for name in DECLARED:
        task = tasks[name]
        nodes = nodes_of(task)
        form = lowering(task.graph, nodes, task.device)
        found = variants(task.graph, nodes, form, task.device)
        assert not {"split", "persist", "autotune", "reorder"} & set(found)
        for params in [form.params, *found["retile"]]:
            item = 4 if name.endswith("float32") else 2
            stage = (params["block_m"] + params["block_n"]) * params["block_k"] * item
            assert params["stages"] * stage <= task.device.shared_bytes
            assert params["block_m"] * params["block_n"] <= 64 * 32 * params["warps"]


async def test_a_narrow_product_takes_its_softmax_step_by_step(router):
    schedule = root(router.graph)
    for phrase in ("fuse r2 into r1", "fuse r3 into r1"):
        offered = {
            action.phrase: action for action in legal_actions(router, schedule, router.device)
        }
        schedule = apply_action(router, schedule, offered[phrase])
    first = next(group for group in schedule.groups if group.region)
    assert first.form.params["block_n"] == 64
    matches("row_product_router", render(router, schedule))


async def test_rows_in_registers_cost_less_than_a_product_in_memory(tasks):
    task = tasks["softmax_64_bfloat16"]
    groups = [group for group in root(task.graph).groups if group.region]
    forms = [lowering(task.graph, group.nodes, task.device) for group in groups]
    apart = schedule_of(
        task.graph,
        [Group(g.region, g.nodes, form) for g, form in zip(groups, forms, strict=True)],
    )
    costs = [cost_of(task, schedule, task.device) for schedule in (one_kernel(task), apart)]
    together_us, apart_us = (estimate_us(cost, task.device) for cost in costs)
    assert together_us < apart_us


@pytest.mark.slow
@pytest.mark.parametrize("case", DECLARED)
async def test_default_tile_does_not_spill(case, tasks, workshop):
    task = tasks[case]
    for source in sources(task):
        arguments = {"file": task.file, "source": source}
        result = await workshop.device.run(f"{JOBS}:compile_ahead", arguments, Limits(wall_s=280))
        assert result.ending is Ending.DONE, f"{source}\n{result.error}\n{result.output}"
        for launch in result.value["launches"]:
            assert not launch["error"]
            assert launch["spill_bytes"] == 0


def sources(task):
    """The program in each precision that its products may have."""
    schedule = one_kernel(task)
    plain = render(task, schedule)
    return {plain, plain.replace('input_precision="ieee"', 'input_precision="tf32"')}


async def test_norm_of_a_product_is_golden(tasks):
    matches("row_product_norm", render(tasks["rms_norm"], one_kernel(tasks["rms_norm"])))


async def test_sweep_over_a_product_is_golden(tasks):
    task = tasks["logsumexp_4096_bfloat16"]
    matches("row_product_sweep", render(task, one_kernel(task)))
