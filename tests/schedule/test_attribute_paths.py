"""How a rendered program names what belongs to the user's module."""

import pytest

from mtmc_engine.schedule.render.names import attribute


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("weight", "self.weight"),
        ("net.0.weight", "self.net[0].weight"),
        ("blocks.3.norm.bias", "self.blocks[3].norm.bias"),
        ("heads.to-keys.weight", "getattr(self.heads, 'to-keys').weight"),
        ("parts.class.bias", "getattr(self.parts, 'class').bias"),
    ],
)
def test_a_path_becomes_source_that_python_reads(path: str, source: str) -> None:
    assert attribute("self", path) == source
    compile(source, "", "eval")
