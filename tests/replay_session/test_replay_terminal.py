"""The session with a language model on a real terminal: from the first step to a proven export."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "replay_server"))
sys.path.insert(0, str(Path(__file__).parents[1] / "screen"))

from exported import exported_test
from replay_server import ReplayServer
from tmux import Tmux

HERE = Path(__file__).parent
# For what compiles and interprets kernels, on a machine that does other things too.
PATIENCE_S = 240

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer(HERE / "script.toml") as server:
        yield server


@pytest.fixture
def window(server: ReplayServer, tmp_path: Path) -> Iterator[Tmux]:
    operator = tmp_path / "gated_softmax.py"
    shutil.copy(HERE / "gated_softmax.py", operator)
    command = [sys.executable, "-m", "mtmc_tui.cli", str(operator), "--planner", "roofline"]
    command += ["--coder", f"openai:replay@{server.base_url}", "--read-prompts", "--steps", "2"]
    command += ["--timings", str(HERE / "timings.json"), "--export", str(tmp_path / "out")]
    tmux = Tmux(tmp_path, (120, 40), command)
    yield tmux
    tmux.close()


def test_a_session_in_a_terminal(window: Tmux, server: ReplayServer, tmp_path: Path) -> None:
    read = window.until(
        "send this prompt?",
        "Nothing has left this machine",
        f"at {server.base_url}",
        "You edit one GPU program",
        "» REPLAYED from a recording, not measured",
        seconds=PATIENCE_S,
    )
    assert "█" not in read.split("5 Time")[1]
    assert server.chats == []
    window.press("Enter")

    # The first kernel is wrong; it goes back with what the judge found.
    repair = window.until("send this prompt?", "attempt 2", "NUMERIC", seconds=PATIENCE_S)
    assert "3.7k tok" in repair
    window.press("Enter")
    asked = window.until("keep lower r3?", "a approve", seconds=PATIENCE_S)
    for text in ("FASTER »1.4", "lower r3 (attempt 2)", "✓ values", "this program"):
        assert text in asked, text
    window.press("a")

    # The second step: a rate limit, then prose, then code.
    window.until("send this prompt?", "step 2/2", seconds=PATIENCE_S)
    window.press("Enter")
    window.until("the coder waits", "HTTP 429")
    window.until("send this prompt?", "asked 2 times: this is the last", seconds=PATIENCE_S)
    window.press("]")
    window.until("The answer cannot be used: it holds no")
    window.press("Enter")
    window.until("keep fuse r2 into r1?", "a approve", seconds=PATIENCE_S)
    window.press("a")
    finished = window.until("finished  »2.53x REPLAYED", "exported to", seconds=PATIENCE_S)
    assert "fuse r2 into r1" in finished
    window.press("q")
    back = window.until("exit code 0", seconds=30)
    assert "»" not in back
    assert "101.5 us replayed" in back
    assert "Exported to" in back

    assert len(server.chats) == 5
    out = tmp_path / "out"
    exported = (out / "gated_softmax_mtmc.py").read_text()
    assert "Not measured here, replayed from timings.json" in exported
    assert "gated_softmax_kernel" in exported
    assert "replayed" in (out / "report.html").read_text()
    proof = exported_test(out)
    assert proof.returncode == 0, proof.stdout
