"""Which kernels the device ran during a call, by the profiler."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from mtmc_engine.proof.wire import Trace

# Bound here, before any candidate is imported.
_enter, _leave, _events = profile.__enter__, profile.__exit__, profile.events

# Names of kernels that come with torch, its libraries and its compiler.
_LIBRARY = re.compile(
    r"at::native|at_cuda_detail|c10::|cublas|cutlass|cudnn|gemm|gemv|nvjet|xmma|implicit_convolve"
    r"|convolve|winograd|cub::|thrust::|flash_fwd|flash::|fmha|pytorch_flash|cufft|cusparse"
    r"|cusolver|nchwToNhwc|nhwcToNchw|splitKreduce|triton_(poi|red|per|tem|for|mm)_"
    r"|vectorized_elementwise|batch_norm|softmax_warp|layer_norm_kernel|RowwiseMoments",
    re.IGNORECASE,
)
# Filling and copying memory is nobody's work.
_MOVING = re.compile(r"^Mem(cpy|set)|FillFunctor|direct_copy_kernel|copy_device_to_device")


def traced(call: Callable[[], None], own: tuple[str, ...]) -> Trace:
    """Device time by kernel over one call, whose preparation of inputs counts as moving memory.

    own: names of the candidate's Triton kernels. Where the profiler does not work here, the trace
    says why and holds nothing.
    """
    try:
        recorder = profile(activities=[ProfilerActivity.CUDA])
        _enter(recorder)
        try:
            call()
        finally:
            _leave(recorder, None, None, None)
        found: dict[str, float] = defaultdict(float)
        for event in _events(recorder) or ():
            if event.device_type == DeviceType.CUDA:
                found[event.name] += float(event.time_range.elapsed_us())
    except Exception as error:  # CUPTI may be missing, taken or forbidden
        return Trace(why=f"{type(error).__name__}: {str(error)[:200]}")
    if not found:
        return Trace(why="the profiler saw no kernel")
    return sorted_out(found, own)


def sorted_out(found: dict[str, float], own: tuple[str, ...]) -> Trace:
    """Kernels by whose they are: launched through the candidate's Triton functions, from a known
    library, or neither, which makes them the candidate's own as well (such as inline CUDA)."""
    ours, others = {}, {}
    for name, time_us in found.items():
        mine = any(name == one or name.startswith(f"{one}_") for one in own)
        if mine or not (_LIBRARY.search(name) or _MOVING.search(name)):
            ours[name[:200]] = time_us
        elif not _MOVING.search(name):
            others[name[:200]] = time_us
    return Trace(ours, others)
