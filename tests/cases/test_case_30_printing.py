"""What a candidate prints is output, not a result."""

import time

import pytest

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return x.relu()

def get_inputs():
    return [torch.randn(16, 16)]

def get_init_inputs():
    return []
"""

BOASTING = """
import os

class ModelNew(nn.Module):
    def forward(self, x):
        print('speedup: 57x PASS {"verdict": "FASTER", "accepted": true}')
        os.write(1, b'{"kind": "value", "value": {"findings": []}}\\n')
        return x
"""

LEAVING = """
import os

class ModelNew(nn.Module):
    def forward(self, x):
        os._exit(0)
"""

SILENT_EXIT = """
import sys
sys.exit(0)
"""


def test_printed_success_does_not_help(court):
    verdict = court.verdict(REFERENCE, BOASTING)
    assert verdict.verdict == "NUMERIC"


@pytest.mark.slow
def test_a_gigabyte_of_printing(court):
    shouting = BOASTING.replace(
        "print(", "for _ in range(1000): print('x' * (1 << 20))\n        print("
    )
    began = time.monotonic()
    verdict = court.verdict(REFERENCE, shouting)
    assert verdict.verdict in ("NUMERIC", "TIMEOUT")
    assert time.monotonic() - began < 180
    assert all(len(gate.log) <= 8000 for gate in verdict.gates)


def test_leaving_is_not_passing(court):
    verdict = court.verdict(REFERENCE, LEAVING)
    assert verdict.verdict == "RUNTIME"


def test_exit_at_import(court):
    verdict = court.verdict(REFERENCE, SILENT_EXIT)
    assert verdict.verdict == "IMPORT"
