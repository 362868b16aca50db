"""What went wrong in a candidate, told with its line."""

from __future__ import annotations

import traceback

from mtmc_engine.proof.wire import CandidateCode, Trouble

# Raised on purpose by code that does not support something.
_REFUSALS = (AssertionError, ValueError, NotImplementedError, TypeError)

# PyTorch's own word for the same: `view` of a layout that has no such view.
_NO_VIEW = "view size is not compatible"


def trouble(error: BaseException, stage: str, code: CandidateCode, case: int = -1) -> Trouble:
    """A report of an exception; `line` is the innermost line of the candidate's own file."""
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [line for frame, line in frames if frame.f_code.co_filename == code.path]
    if isinstance(error, SyntaxError) and error.filename == code.path:
        own.append(error.lineno or 0)
    innermost = frames[-1][0].f_code.co_filename if frames else ""
    refusal = innermost == code.path and isinstance(error, _REFUSALS)
    refusal = refusal or (isinstance(error, RuntimeError) and _NO_VIEW in str(error))
    root = error
    while type(root).__name__ == "InterpreterError" and root.__cause__ is not None:
        root = root.__cause__
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return Trouble(
        stage,
        type(root).__name__,
        str(root).strip()[:2000],
        own[-1] if own else 0,
        case,
        refusal,
        text[-6000:],
    )
