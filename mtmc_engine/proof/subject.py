"""What is judged, and within which bounds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from mtmc_engine.core.program import Schedule
from mtmc_engine.core.task import Task
from mtmc_engine.proof.wire import Build
from mtmc_engine.system.config import StageLimits
from mtmc_engine.system.jobs import Confinement, Limits


@dataclass(frozen=True)
class Bounds:
    """Wall-clock seconds by stage, and what a child may use, as in system.jobs.Limits.

    compile_s: import and ahead-of-time compilation. reference_s: the reference over all cases.
    values_s: the candidate over all cases. timing_s: all timing of one candidate.
    sampling_s: of GPU time under the lock, for the samples of one input set.
    """

    compile_s: float = 180
    reference_s: float = 120
    values_s: float = 120
    timing_s: float = 300
    sampling_s: float = 0.6
    memory_mb: int = Limits.memory_mb
    output_kb: int = Limits.output_kb
    processes: int = Limits.processes
    disk_mb: int = Limits.disk_mb

    @staticmethod
    def of(limits: StageLimits) -> Bounds:
        """The bounds that the settings ask for."""
        names = (field.name for field in fields(Bounds))
        return Bounds(**{n: getattr(limits, n) for n in names if hasattr(limits, n)})

    def limits(self, wall_s: float) -> Limits:
        """The limits of a child that may take `wall_s` seconds."""
        return Limits(wall_s, self.memory_mb, self.output_kb, self.processes, self.disk_mb)


@dataclass(frozen=True)
class Subject:
    """A candidate for a task.

    source: the candidate's module. name: the node it belongs to, or a file's stem.
    baselines: other contestants of the timing by name, such as {"previous": source}.
    original: the contestant that is the session's original, "" where `source` is it itself.
    schedule: what `source` was rendered from, for estimates; None for foreign code.
    folder: scratch space; truths are kept there for further candidates of the same task.
    beside: folder that helper modules of the candidate are imported from, "" for none.
    timed: whether to time it where a GPU is present. against_compiled: also against torch.compile.
    """

    task: Task
    source: str
    name: str
    folder: str
    baselines: Mapping[str, str] = field(default_factory=dict)
    original: str = "eager"
    schedule: Schedule | None = None
    baseline_schedules: Mapping[str, Schedule] = field(default_factory=dict)
    seed: int = 0
    beside: str = ""
    timed: bool = True
    against_compiled: bool = True
    bounds: Bounds = Bounds()

    @property
    def digest(self) -> str:
        """First 12 hexadecimal digits of the source's SHA-256."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:12]

    @property
    def device(self) -> str:
        """Where values are computed: torch's name of the device."""
        return "cuda" if self.task.device.present else "cpu"

    @property
    def own_folder(self) -> Path:
        """The candidate's private folder."""
        return self.path_of(self.source).parent

    def path_of(self, source: str) -> Path:
        """Where a source of this session lies, this candidate's own or another's."""
        digest = hashlib.sha256(source.encode()).hexdigest()[:12]
        return Path(self.folder) / f"candidate-{digest}" / f"candidate_{digest}.py"

    def cache_of(self, source: str) -> Path:
        """Compiled kernels of a source, for its own processes only."""
        return self.path_of(source).parent / "cache"

    @property
    def compiler_cache(self) -> Path:
        """What torch.compile makes of the reference."""
        return Path(self.folder) / "torch-compile"

    @property
    def token(self) -> str:
        """What a worker must report that runs this very source: its SHA-256, hexadecimal."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    @property
    def compile_cache(self) -> Path:
        """Compiled kernels of this candidate, for its own processes only."""
        return self.cache_of(self.source)

    def confined(self, *writable: Path) -> Confinement:
        """How its processes are shut in. writable: folders beside its compile cache, made here.

        None of them sees what the reference or another candidate gave or gives meanwhile: what
        one of them learnt would lie in the cache for the next.
        """
        folders = (self.compile_cache, *writable)
        for folder in (*folders, self.truths, self.results):
            folder.mkdir(parents=True, exist_ok=True)
        return Confinement(tuple(map(str, folders)), self.hidden)

    @property
    def truths(self) -> Path:
        """What the reference gave, a folder for each of its builds."""
        return Path(self.folder) / "truths"

    @property
    def results(self) -> Path:
        """What candidates gave, a folder for each judgement."""
        return Path(self.folder) / "results"

    @property
    def hidden(self) -> tuple[str, ...]:
        """Folders that no candidate may look into."""
        return str(self.truths), str(self.results)

    def build(self, device: str, randomise: bool = True) -> Build:
        """How the operator itself is built, at declared sizes."""
        task = self.task
        tf32 = task.tf32 or task.policy.precision == "tf32"
        return Build(
            task.file,
            task.reference_name,
            task.policy,
            self.seed,
            device,
            randomise=randomise,
            tf32=tf32,
            keywords=task.keywords,
        )
