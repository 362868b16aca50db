"""The workbench on this terminal with the scripted engine: launch.py RECORDING COMMANDS [flags]."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from screenplay import scripted

from mtmc_engine.core.options import RunOptions
from mtmc_tui.screen.app import Workbench, run_workbench
from mtmc_tui.screen.settings import load_settings

recording, commands, *flags = sys.argv[1:]
app = Workbench(
    RunOptions("softmax.py"),
    load_settings(),
    start=scripted(Path(recording), Path(commands), *flags),
)
sys.exit(asyncio.run(run_workbench(app)))
