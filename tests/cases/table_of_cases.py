"""The table of docs/cases.md, read from the tests: `python tests/cases/table_of_cases.py`.

A test holds the cases that its file is named after (`test_case_08_09_….py`) and those that it is
marked with (`@pytest.mark.case(5)`). Verdicts are the classes that its text names. What runs on a
GPU is read from tests/gpu/gpu_cases.py.
"""

import ast
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "cases.md"
GPU = TESTS / "gpu" / "gpu_cases.py"
CONTROLS = TESTS / "cases" / "test_honest_controls.py"
CLASSES = (
    *("SYNTAX", "IMPORT", "COMPILE", "RESOURCES", "LAUNCH", "ILLEGAL_ACCESS", "TIMEOUT", "OOM"),
    *("SHAPE", "DTYPE", "LAYOUT", "NONFINITE", "NUMERIC", "MUTATED_INPUT", "ALIASED", "RUNTIME"),
    *("NONDETERMINISTIC", "STATE_DRIFT", "NOT_OWN_KERNEL", "SUSPICIOUS", "REFERENCE_ERROR"),
    *("SLOWER", "SAME", "AMBIGUOUS", "FASTER", "UNTIMED"),
)
CASES = {
    1: "zeros where values are tiny",
    2: "integer targets",
    3: "memory that was never written",
    4: "inputs destroyed",
    5: "a side stream that is not joined",
    6: "stores far outside",
    7: "a kernel that never ends",
    8: "tuned in place, nothing restored",
    9: "configurations that write a half each",
    10: "too much shared memory",
    11: "a source that is only a string",
    12: "rows that do not follow each other",
    13: "operands of different layouts",
    14: "offsets above 2^31",
    15: "a grid that is too large",
    16: "an empty tensor",
    17: "variance as a difference of squares",
    18: "results kept under a key",
    19: "computed now and then",
    20: "code in a model's reply",
    21: "a model that only thinks",
    22: "a source longer than the context",
    23: "a file that is no complete model",
    24: "killed and resumed",
    25: "raises only when it is timed",
    26: "two candidates of one name",
    27: "a copy of the baseline",
    28: "lower precision",
    29: "an output that depends on nothing",
    30: "prints its own success",
    31: "replaces timers and comparisons",
    32: "falls back to the library",
    33: "innocent words",
    34: "overwrites its logits",
    35: "an endpoint that is not there",
}


@dataclass
class Held:
    """Tests and verdicts of one case."""

    tests: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    verdicts: set[str] = field(default_factory=set)
    soak: bool = False


def classes_in(node):
    """Verdict classes among the strings and attributes of a piece of code."""
    words = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and part.value in CLASSES:
            words.add(part.value)
        elif isinstance(part, ast.Attribute) and part.attr in CLASSES:
            words.add(part.attr)
    return words


def marks_of(decorators):
    """Numbers of `pytest.mark.case(…)` among decorators or a `pytestmark`."""
    calls = [part for one in decorators for part in ast.walk(one) if isinstance(part, ast.Call)]
    cases = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "case"]
    return [number.value for call in cases for number in call.args]


def of_file(path):
    """Pairs of case and test function, with the module's tree."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = re.match(r"test_case_((?:\d\d_)+)", path.name)
    numbers = [int(n) for n in named.group(1).split("_") if n] if named else []
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "pytestmark":
            numbers += marks_of([node.value])
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[:5] == "test_":
            for number in sorted({*numbers, *marks_of(node.decorator_list)}):
                yield number, node, tree


def held():
    """What holds each case."""
    found = defaultdict(Held)
    for path in sorted(TESTS.rglob("test_*.py")):
        for number, test, tree in of_file(path):
            one = found[number]
            one.tests[str(path.relative_to(TESTS))] += 1
            named = classes_in(test)
            used = {part.id for part in ast.walk(test) if isinstance(part, ast.Name)}
            for node in tree.body:
                if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in used:
                    named |= classes_in(node.value)
            one.verdicts |= named
    return found


def on_gpu():
    """Rows of gpu_cases.py: number, what it is, right verdicts."""
    tree = ast.parse(GPU.read_text(encoding="utf-8"))
    constants = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Case":
            number, name, right = call.args[0], call.args[1], call.args[4]
            if not isinstance(number, ast.Constant) or not isinstance(name, ast.Constant):
                continue
            names = [part.id for part in ast.walk(right) if isinstance(part, ast.Name)]
            words = classes_in(right)
            for one in names:
                words |= classes_in(constants.get(one, ast.Constant(None)))
            yield str(number.value), name.value, words


def controls():
    """Names of the honest controls that many seeds are tried on."""
    tree = ast.parse(CONTROLS.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "CONTROLS":
            yield from (key.value for key in node.value.keys)


def ordered(words):
    return ", ".join(word for word in CLASSES if word in words) or "a sentence or an exit code"


def page():
    """The whole page."""
    found, gpu = held(), list(on_gpu())
    lines = [
        "# Cases: what the judge gets right",
        "",
        "Written by `python tests/cases/table_of_cases.py` from the tests themselves. Verdicts are",
        "those that the tests ask for, of cheats and of their honest twins (`UNTIMED`: accepted,",
        "no GPU here to time it). A case without an entry under *on a GPU* needs none.",
        "",
        "| case | what | tests | verdicts without a GPU | on a GPU |",
        "|---|---|---|---|---|",
    ]
    for number, what in CASES.items():
        one = found[number]
        tests = "; ".join(f"`{name}` ({count})" for name, count in one.tests.items())
        there = [f"{name}: {ordered(words)}" for n, name, words in gpu if n == str(number)]
        row = (str(number), what, tests or "—", ordered(one.verdicts) if tests else "—")
        lines.append(f"| {' | '.join(row)} | {'; '.join(there)} |")
    lines += ["", "## Honest controls", "", "| control | tests |", "|---|---|"]
    lines += [
        f"| {name} | `cases/test_honest_controls.py`, also on a GPU; 100 seeds in `make soak` |"
        for name in controls()
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit(0)
