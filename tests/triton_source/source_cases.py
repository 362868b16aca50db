"""Triton sources of several styles, and all that can be rewritten in them."""

from functools import lru_cache
from pathlib import Path

from mtmc_engine.schedule.source.listing import listing_of
from mtmc_engine.schedule.source.rewrite import Setting
from mtmc_engine.schedule.source.steps import REWRITES

FOLDER = Path(__file__).parent / "sources"
SAMPLES = Path(__file__).parents[2] / "samples"
FILES = {
    **{path.stem: path for path in sorted(FOLDER.glob("*.py"))},
    "matmul_bias_gelu": SAMPLES / "matmul_bias_gelu.py",
    "add_rms_norm": SAMPLES / "add_rms_norm.py",
}

# Shapes of the call's tensors: around blocks, divisible ones, single elements, primes.
SHAPES = {
    "vector_add": [[(n,), (n,)] for n in (1, 255, 256, 1024, 1031)],
    "row_softmax": [[(3, n)] for n in (1, 64, 65, 128)],
    "grouped_matmul": [[(m, k), (k, n)] for m, k, n in ((64, 64, 64), (33, 31, 65), (1, 32, 7))],
    "pairwise_product": [[(m, k), (k, n)] for m, k, n in ((32, 32, 16), (17, 19, 33))],
    "scalar_norm": [[(3, n), (n,)] for n in (5, 128, 512, 1100)],
    "in_place_scale": [[(m, n)] for m, n in ((2, 64), (3, 43), (4, 512))],
    "own_functions": [[(3, n)] for n in (3, 32, 33)],
    "two_stages": [[(n,)] for n in (1, 256, 512, 4096, 16400)],
    "matmul_bias_gelu": [
        [(m, k), (k, n), (n,)] for m, k, n in ((128, 64, 128), (65, 33, 130), (3, 5, 7))
    ],
    "add_rms_norm": [[(3, 4096), (3, 4096)]],
}


@lru_cache(maxsize=64)
def rewrites(text, **setting):
    """Every rewrite of a source as (kind, rewrite)."""
    listing = listing_of(text)
    return [
        (kind, rewrite)
        for kind, found in REWRITES.items()
        for each in found
        for rewrite in each(listing, Setting(**setting))
    ]


def named(text, kind, words="", place=""):
    """The one rewrite of a kind with these words."""
    found = [
        rewrite
        for other, rewrite in rewrites(text)
        if other == kind and rewrite.words.startswith(words) and rewrite.place.startswith(place)
    ]
    assert found, f"no {kind} {words}"
    return found[0]
