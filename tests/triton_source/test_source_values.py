"""Every rewrite of every source computes what the reference does, and compiles for a real card."""

import msgspec
import pytest
import pytest_asyncio

from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.core.task import Policy
from mtmc_engine.proof.wire import Build, CandidateCode, Compiled, Target
from mtmc_engine.system.devices import card
from mtmc_engine.system.jobs import Ending, Limits, Workshop
from tests.triton_source.source_cases import FILES, SHAPES, rewrites

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]
CARD: DeviceCard = card("sm_90")
# What the rewrites of each source must include.
EXPECTED = {
    "vector_add": {"retile", "pipeline", "vectorize", "autotune"},
    "row_softmax": {"pipeline", "vectorize"},
    "grouped_matmul": {"retile", "pipeline", "vectorize", "reorder"},
    "pairwise_product": {"retile", "pipeline", "vectorize", "primitive"},
    "scalar_norm": {"retile", "pipeline", "vectorize", "autotune", "primitive"},
    "in_place_scale": {"retile", "pipeline", "vectorize", "autotune"},
    "own_functions": {"pipeline", "vectorize", "primitive"},
    "two_stages": {"retile", "pipeline", "vectorize"},
    "matmul_bias_gelu": {"retile", "pipeline", "vectorize", "reorder", "autotune"},
    "add_rms_norm": {"retile", "pipeline", "vectorize", "autotune"},
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def workshop():
    made = Workshop()
    yield made
    await made.close()


def texts(name):
    """The source and each of its rewrites by a name of its own."""
    text = FILES[name].read_text()
    found = {"as it is": text}
    for kind, rewrite in rewrites(text):
        found[f"{kind} {rewrite.place} {rewrite.words}"] = rewrite.source()
    return found


@pytest.mark.parametrize("name", FILES)
async def test_every_rewrite_keeps_the_values(workshop, name):
    sources = texts(name)
    kinds = {key.split()[0] for key in sources} - {"as"}
    assert kinds == EXPECTED[name]
    arguments = {
        "file": str(FILES[name]),
        "sources": sources,
        "shapes": SHAPES[name],
        "card": msgspec.to_builtins(CARD),
    }
    job = "tests.triton_source.source_jobs:values"
    result = await workshop.interpret.run(job, arguments, Limits(wall_s=280))
    assert result.ending is Ending.DONE, result.traceback
    wrong = {key: value for key, value in result.value.items() if not _fits(value)}
    assert not wrong


def _fits(value):
    return isinstance(value, float) and value <= 1


@pytest.mark.parametrize("name", FILES)
async def test_every_rewrite_compiles(workshop, name, tmp_path):
    failed = {}
    for number, (key, text) in enumerate(texts(name).items()):
        path = tmp_path / f"compiled_{number}.py"
        path.write_text(text)
        arguments = msgspec.to_builtins(
            {
                "build": Build(str(FILES[name]), "", Policy(), 0, "cpu"),
                "code": CandidateCode(str(path), path.stem),
                "target": Target(CARD),
                "specs": [_specs(name)],
            }
        )
        job = "mtmc_engine.proof.work.compile:compile_ahead"
        result = await workshop.device.run(job, arguments, Limits(wall_s=200))
        assert result.ending is Ending.DONE, result.traceback
        compiled = msgspec.convert(result.value, Compiled)
        launches = [one for one in compiled.launches if not one.error]
        if compiled.trouble or not compiled.ahead or not launches:
            failed[key] = compiled.trouble or compiled.why
    assert not failed


def _specs(name):
    half = name in ("grouped_matmul", "matmul_bias_gelu")
    return [TensorSpec(tuple(s), "float16" if half else "float32") for s in SHAPES[name][0]]
