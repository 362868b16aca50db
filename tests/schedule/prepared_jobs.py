"""Jobs of the tests of prepared weights: programs whose parameters change between two calls."""

from tests.schedule.render_jobs import _program


def followed(arguments, report):
    """How a program follows a change of its parameters.

    arguments: {"file": reference, "source": program, "change": how}. Returns how far the result
    "moved", its "error" against the reference as a part of the largest value, and whether another
    call "kept" what was prepared.
    """
    import torch

    from mtmc_engine.capture.load import load_reference

    reference = load_reference(arguments["file"])
    module = _program(arguments["source"])
    model = reference.build(0)
    torch.manual_seed(1)
    with torch.no_grad():
        for value in model.state_dict().values():
            if value.is_floating_point():
                value.copy_(torch.rand_like(value) + 0.5)
    (x,) = reference.inputs(1)
    candidate = module.ModelNew.from_reference(model)
    with torch.no_grad():
        before = candidate(x)
        x = _CHANGES[arguments["change"]](torch, candidate, x)
        now, expected = candidate(x), super(module.ModelNew, candidate).forward(x)
    prepared = candidate._prepared()
    return {
        "moved": float((now - before).abs().max()),
        "error": float((now - expected).abs().max() / expected.abs().max()),
        "kept": candidate._prepared() is prepared,
    }


def _in_place(torch, model, x):
    model.norm.running_var.mul_(4)
    return x


def _loaded(torch, model, x):
    model.load_state_dict({k: v * 2 for k, v in model.state_dict().items()})
    return x


def _another(torch, model, x):
    model.conv.weight = torch.nn.Parameter(model.conv.weight * 3)
    return x


def _wider(torch, model, x):
    model.double()
    model.norm.weight.mul_(2)
    return x.double()


_CHANGES = {
    "in_place": _in_place,
    "loaded": _loaded,
    "another_parameter": _another,
    "wider": _wider,
}
