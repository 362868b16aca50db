"""Work on a side stream: fine where it is joined; its time is the timing gate's affair."""

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return x * 2 + 1

def get_inputs():
    return [torch.randn(24, 40)]

def get_init_inputs():
    return []
"""

ON_A_STREAM = """
@triton.jit
def affine(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, {value}, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            if x.numel():
                affine[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        torch.cuda.current_stream().wait_stream(side)
        out.record_stream(torch.cuda.current_stream())
        return out
"""

LATER = """
import threading, time

class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        def work():
            time.sleep(0.05)
            out.copy_(x * 2 + 1)
        threading.Thread(target=work).start()
        return out
"""


def test_a_joined_stream_is_accepted(court):
    found = court.verdict(REFERENCE, ON_A_STREAM.format(value="x * 2 + 1"))
    assert found.verdict == "UNTIMED", found.reason


def test_a_stream_hides_no_wrong_value(court):
    found = court.verdict(REFERENCE, ON_A_STREAM.format(value="x * 2"))
    assert found.verdict == "NUMERIC", found.reason


def test_a_thread_that_is_not_waited_for(court):
    found = court.verdict(REFERENCE, LATER)
    assert found.verdict == "NUMERIC", found.reason
