"""Names of the jobs that run in children."""

from __future__ import annotations

COMPILE = "mtmc_engine.proof.work.compile:compile_ahead"
TRUTH = "mtmc_engine.proof.work.truth:make_truths"
CANDIDATE = "mtmc_engine.proof.work.run:run_candidate"
JUDGE = "mtmc_engine.proof.work.judge:judge"
STAND = "mtmc_engine.proof.timing.stand:serve"
REFEREE = "mtmc_engine.proof.timing.referee:hold"
