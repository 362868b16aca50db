"""Phrases of legal steps, as the action kinds word them."""

PHRASES = (
    "lower r1",
    "lower r2",
    "lower r3",
    "fuse r2 into r1",
    "fuse r3 into r2",
    "retile r1 to 128x128x32",
    "retile r1 to 128x64x32",
    "retile r1 to 64x64x64",
    "pipeline r1 with 4 stages",
    "pipeline r1 with 3 stages",
    "stop",
)
