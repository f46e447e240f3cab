"""Cases whose options are drawn from the seed as well: only with --random-shapes or --attention."""
from losses import LOSSES
from model_cases import train, trained_model
from transformer_cases import (activation, activations, cross_entropy, decoder, encoder, layer_norm, rms_norm,
                               rotary, swiglu, value_loss)

MASKS = (None, "causal", "float", "bool", "float3d")
EPSILONS = (1e-6, 1e-5, 1e-3, 0.1)


def options_of(cases, name):
    """Draws of a case's options, apart from those of its values."""
    return cases.draw("options of " + name)


def stack_options(draw):
    layers = draw.choice([1, 1, 2, 3])
    return dict(act=draw.choice(["relu", "gelu"]), norm_first=draw.flag(), mask=draw.choice(MASKS),
                padding=draw.flag(), layers=layers, eps=draw.choice(EPSILONS), bias=draw.flag(),
                final_norm=layers > 1 and draw.flag())


CASES_PER_SHAPE = 25  # cases of one shape share instantiations of the library


def drawn_attention_cases(cases, mha, count):
    """`count` cases of nn.MultiheadAttention: a shape for every CASES_PER_SHAPE of them, masks and values for each."""
    for i in range(count):
        shape = options_of(cases, f"mha_shape_{i // CASES_PER_SHAPE}")
        crossing = shape.flag()
        options = dict(
            tgt_len=shape.integer(1, 9), src_len=shape.integer(1, 9) if crossing else None,
            heads=shape.choice([1, 2, 3, 4, 6, 8]), head_dim=shape.integer(1, 9), bias=shape.flag(),
            kdim=shape.integer(3, 12) if crossing and shape.flag() else None,
            vdim=shape.integer(3, 12) if crossing and shape.flag() else None,
            add_bias_kv=shape.flag(), add_zero_attn=shape.flag())
        own = options_of(cases, f"mha_drawn_{i}")
        mha(cases, f"mha_drawn_{i}", batch=own.integer(1, 3), mask=own.choice([*MASKS, "float_inf", "bool_deadrow"]),
            padding=own.choice([None, "right", "left", "full"]), scale=own.choice([0.1, 1.0, 1.0, 3.0]), errors=True,
            **options)


def random_cases(cases):
    def several(count, case, name, options):
        for i in range(count):
            case(cases, f"{name}_random_{i}", **options(options_of(cases, f"{name}_random_{i}")))

    several(10, encoder, "encoder", stack_options)
    several(8, decoder, "decoder", lambda draw: dict(stack_options(draw), memory_mask=draw.choice(MASKS),
                                                     memory_padding=draw.flag()))
    several(10, cross_entropy, "ce", lambda draw: dict(
        reduction=draw.choice(["mean", "sum", "none"]), smoothing=draw.choice([0.0, 0.05, 0.3, 1.0]),
        weighted=draw.flag(), ignore=draw.choice([None, None, -100, -1, 0, 2, 255]),
        scale=draw.choice([0.1, 2.0, 30.0])))
    several(6, layer_norm, "layer_norm", lambda draw: dict(
        shape=[1] * draw.integer(1, 4), eps=draw.choice(EPSILONS), affine=draw.flag(),
        scale=draw.choice([1e-3, 1.0, 1e4]), shift=draw.choice([0.0, 0.0, -50.0])))
    several(4, rms_norm, "rms_norm", lambda draw: dict(
        shape=[1] * draw.integer(1, 4), eps=draw.choice(EPSILONS), affine=draw.flag(),
        scale=draw.choice([1e-3, 1.0, 1e4])))
    several(3, swiglu, "swiglu", lambda draw: dict(bias=draw.flag()))
    several(4, rotary, "rotary", lambda draw: dict(
        interleaved=draw.flag(), base=draw.choice([100.0, 10000.0, 500000.0])))
    for family, loss in LOSSES.items():
        several(3, value_loss, family, lambda draw, family=family, loss=loss: dict(
            family=family, **{name: draw.choice(values) for name, values in {"reduction": ["mean", "sum"], **loss.drawn}.items()}))
    several(4, train, "train", lambda draw: dict(
        layers=draw.choice([1, 1, 2]), act=draw.choice(["relu", "gelu"]), norm_first=draw.flag(),
        lr=draw.choice([1e-3, 1e-2]), betas=draw.choice([(0.9, 0.999), (0.8, 0.95)]),
        weight_decay=draw.choice([0.0, 0.01, 0.2])))
    several(6, trained_model, "trained", lambda draw: dict(
        layers=draw.choice([1, 1, 2, 3, 6]), act=draw.choice(["relu", "gelu"]), norm_first=draw.flag(),
        eps=draw.choice([1e-6, 1e-5, 1e-3]), positions=draw.flag(), final_norm=draw.flag(),
        input_scale=draw.choice([1.0, 1.0, 0.125])))
    for kind, forward in activations(random_shapes=True).items():
        activation(cases, kind + "_random", forward, kind)
