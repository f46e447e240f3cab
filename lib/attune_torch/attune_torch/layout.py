"""Where recorded values have their features, and the same values as attune has them: [batch, tokens, features].

Convolutions of PyTorch have channels first, [batch, channels, height, width]. A pixel is a token, row by row. A change of
shape or order is told by its numbers: the axis is the one for which tokens and features stay as they were.
"""
import torch

# Operations whose input and output have channels first.
CHANNELS_FIRST = {"conv1d", "conv2d", "avg_pool1d", "avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "max_pool1d",
                  "max_pool2d", "batch_norm"}
FEATURES_LAST = {"linear", "addmm", "embedding", "layer_norm", "matmul", "__matmul__", "bmm", "softmax", "scaled_dot_product_attention"}
SHAPES = {"view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "expand", "expand_as", "flatten", "swapaxes",
          "getitem", "__getitem__", "chunk", "split", "unbind", "repeat", "repeat_interleave", "movedim", "rearrange"}


def tokens(value, axis):
    """[batch, tokens, features] of a value whose features have this axis; others as they are."""
    if axis is None or value.dim() < 2:
        return value
    return torch.movedim(value, axis, -1).reshape(value.shape[0], -1, value.shape[axis])


def axis_after(node, before, axis):
    """The features' axis of an operation's value, from that of its first derived input; None where it has none."""
    rank, old = node.value.dim(), before.value.dim()
    if node.operation in CHANNELS_FIRST:
        return 1
    if node.module is not None or node.operation in FEATURES_LAST or axis is None:
        return rank - 1
    if node.operation in SHAPES and node.value.numel() == before.value.numel() and node.shape[0] == before.shape[0]:
        values = tokens(before.value, axis)
        return next((found for found in range(rank - 1, 0, -1) if torch.equal(tokens(node.value, found), values)), None)
    return axis if rank == old else rank - 1 if axis == old - 1 else 1


def axes_from(nodes, first):
    """Axes by the nodes' indices, where inputs of three dimensions have `first`, and whether they suit every operation."""
    found, fits = {}, True
    rearranged = set()  # the input, in other orders and shapes
    for node in nodes:
        derived = [item for item in node.inputs() if item.derived]
        if node.operation == "input":
            rank = node.value.dim()
            found[node.index] = {3: first, 4: 1}.get(rank, rank - 1)
            rearranged.add(node.index)
        elif derived:
            axis = found.get(derived[0].index)
            fits &= axis == 1 or node.operation not in CHANNELS_FIRST
            found[node.index] = axis_after(node, derived[0], axis)
            if node.operation in SHAPES and derived[0].index in rearranged:
                rearranged.add(node.index)
                if found[node.index] is None and node.value.dim() < 4:  # rows that forward makes of the input
                    found[node.index] = node.value.dim() - 1
    return found, fits


def axes(nodes):
    """The features' axis of every value, by its node's index; `nodes` in the order of the pass. An input [batch, a, b] has its
    channels first where a convolution, a pool or a BatchNorm takes it so."""
    last, fits = axes_from(nodes, 2)
    if fits:
        return last
    first, fits = axes_from(nodes, 1)
    return first if fits else last
