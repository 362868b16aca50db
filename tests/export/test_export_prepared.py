"""An exported file whose weights are prepared: right however it is built, and in gradients."""

import json
import subprocess
import sys

import pytest
import pytest_asyncio
from msgspec.structs import replace

from mtmc_engine.core.program import Program
from mtmc_engine.export.standalone import standalone
from mtmc_engine.schedule.legal import apply_action, parse_phrase
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render
from mtmc_engine.system.jobs import Workshop
from tests.schedule.family_runs import captured
from tests.schedule.rewriting_cases import CASES

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Errors against the reference: built by from_reference, by the constructor and a state dict, after
# a step of an optimiser; and whether gradients reach the weights.
CHECK = """
import json, torch, exported
torch.manual_seed(0)
x = torch.randn(4, 3, 8, 8)
reference = exported.Model().eval()
with torch.no_grad():
    for value in reference.state_dict().values():
        value.copy_(torch.rand(value.shape) + 0.5)
ours = exported.ModelNew.from_reference(reference)
built = exported.ModelNew().eval()
built.load_state_dict(reference.state_dict())
def error(model):
    with torch.no_grad():
        return float((model(x) - reference(x)).abs().max() / reference(x).abs().max())
found = {"from_reference": error(ours), "built": error(built)}
found["prepared"] = all(hasattr(m, "_prepared_values") for m in (ours, built))
ours(x).sum().backward()
found["gradient"] = float(reference.conv.weight.grad.abs().max())
torch.optim.SGD(reference.parameters(), lr=1e-3).step()
found["after a step"] = error(ours)
print(json.dumps(found))
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def task(tmp_path_factory):
    workshop = Workshop()
    folder = tmp_path_factory.mktemp("prepared")
    source = CASES["norm_into_convolution"][0]
    found = await captured(workshop, folder, {"prepared": source})
    await workshop.close()
    task = found["prepared"]
    return replace(task, policy=replace(task.policy, mode="eval"))


async def test_prepared_weights_serve_every_way_of_building(task, tmp_path):
    schedule = root(task.graph)
    for phrase in ("simplify r1", "lower r3"):
        schedule = apply_action(task, schedule, parse_phrase(task, schedule, phrase))
    program = Program(render(task, schedule), schedule)
    text = standalone(task, program, CASES["norm_into_convolution"][0], "A folded norm.")
    (tmp_path / "exported.py").write_text(text)
    environment = {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PATH": ""}
    environment["HOME"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        check=False,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for way in ("from_reference", "built", "after a step"):
        assert found[way] < 1e-5, found
    assert found["prepared"]
    assert found["gradient"] > 0
