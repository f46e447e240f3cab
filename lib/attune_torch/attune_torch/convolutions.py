"""Convolutions, average pooling, and BatchNorm, which is folded into the layer before it, or a layer by itself."""
import torch
import torch.nn.functional as F

from .errors import Unsupported
from .folding import Alone, Folded, scale_and_shift, warnings_of
from .layers import convolution_type, linear, pool_type


def pair(value, rank):
    """One number for each dimension of the kernel."""
    return tuple(value) if isinstance(value, (list, tuple)) and len(value) == rank else \
        (value[0] if isinstance(value, (list, tuple)) else value,) * rank


class Convolutions:
    """The part of a Recognizer that knows channels first."""

    def channels_first(self, node, before):
        if self.axes.get(before.index) != 1:
            raise node.refused("a convolution or pooling that does not take [batch, channels, …] of a sequence or an image: ")
        return tuple(before.shape[2:])

    def convolution_layer(self, node):
        """A convolution, or patches of the input, as `last_layer` answers."""
        patches = self.patch_embedding(node)
        if patches:
            return [patches], self.recording.inputs[0]
        image, weight, bias = (self.argument(node, index, name) for index, name in enumerate(("input", "weight", "bias")))
        kernel = tuple(weight.shape[2:])
        stride, padding, dilation = (pair(self.argument(node, index, name, default), len(kernel)) for index, name, default in (
            (3, "stride", 1), (4, "padding", 0), (5, "dilation", 1)))
        if padding[0] == "valid":
            padding = (0,) * len(kernel)
        if padding[0] == "same":
            if any(extent % 2 == 0 for extent in kernel):
                raise node.refused("padding 'same' of an even kernel, which is not the same on both sides: ")
            padding = tuple(extent // 2 for extent in kernel)
        if set(dilation) != {1}:
            raise node.refused("a convolution with dilation: ")
        zeros, before = self.zeros_around(image, len(kernel))
        extents = self.channels_first(node, before)
        ahead = tuple(own + more[0] for own, more in zip(padding, zeros))
        behind = tuple(own + more[1] for own, more in zip(padding, zeros))
        causal = len(kernel) == 1 and behind == (0,) and ahead == (kernel[0] - 1,) and kernel[0] > 1
        if ahead != behind and not causal:
            raise node.refused("a convolution with more zeros on one side, and not causal: ")
        groups = self.argument(node, 6, "groups", 1)
        return [self.convolved(node, extents, weight, bias, stride, (0,) if causal else ahead, groups, causal)], before

    def convolved(self, node, extents, weight, bias, stride, padding, groups, causal):
        d_out, d_in, *kernel = weight.shape
        layer = self.layer(node, "", *self.weight_and_bias(node, weight, bias))
        layer.kind, layer.weight = "convolution", weight
        layer.make = lambda bias: convolution_type(extents, d_in * groups, d_out, tuple(kernel), stride, padding, groups, causal, bias)
        layer.type, layer.bias = layer.make(bias is not None), bias is not None
        return layer

    @staticmethod
    def zeros_around(node, rank):
        """Zeros that F.pad puts around a value, (in front, behind) for each dimension, and the value."""
        if node.operation != "pad":
            return ((0, 0),) * rank, node
        amounts, mode, value = (node.args[index] if len(node.args) > index else node.kwargs.get(name, default)
                                for index, name, default in ((1, "pad", ()), (2, "mode", "constant"), (3, "value", None)))
        around = [tuple(amounts[index:index + 2]) for index in range(0, len(amounts), 2)][::-1]
        around = ((0, 0),) * (rank - len(around)) + tuple(around)
        if mode != "constant" or value or len(around) != rank or any(amount < 0 for amount in amounts):
            raise node.refused("padding that is not zeros around a sequence or an image: ")
        return around, node.args[0]

    def cut_convolution(self, node):
        """A causal convolution whose last tokens are cut off, as `last_layer` answers; or None."""
        before = node.args[0]
        if before.operation != "conv1d" or self.axes.get(node.index) != 1 or len(node.shape) != 3:
            return None
        kernel, padding = before.args[1].shape[2], pair(self.argument(before, 4, "padding", 0), 1)[0]
        cut = before.shape[2] - node.shape[2]
        if pair(self.argument(before, 3, "stride", 1), 1) != (1,) or cut != padding or padding != kernel - 1 or not torch.equal(
                node.value, before.value[:, :, :-cut]):
            return None
        image, weight, bias = (self.argument(before, index, name) for index, name in enumerate(("input", "weight", "bias")))
        extents = self.channels_first(before, image)
        groups = self.argument(before, 6, "groups", 1)
        return [self.convolved(node, extents, weight, bias, (1,), (0,), groups, True)], image

    def patch_embedding(self, convolution):
        """A convolution of the model's input whose kernels do not overlap is a linear layer over patches; else None."""
        image, weight, bias = (self.argument(convolution, index, name) for index, name in enumerate(("input", "weight", "bias")))
        kernel = tuple(weight.shape[2:])
        strides = pair(self.argument(convolution, 3, "stride", 1), len(kernel))
        if image is not self.recording.inputs[0] or strides != kernel or self.argument(convolution, 6, "groups", 1) != 1:
            return None
        flat = kernel if len(kernel) == 2 else (1, *kernel)
        x = image.value if image.value.dim() == 4 else image.value.unsqueeze(2)
        patches = F.unfold(x, flat, stride=flat).transpose(1, 2)
        answer = F.linear(patches, weight.value.flatten(1), bias.value if bias is not None else None)
        if answer.shape != self.tokens(convolution).shape or not self.close(answer, self.tokens(convolution), 1e-5):
            return None
        d_in, d_out = patches.shape[2], weight.shape[0]
        layer = self.layer(convolution, "", *self.weight_and_bias(convolution, weight, bias))
        layer.kind, layer.weight, layer.d_in, layer.d_out = "linear", weight, d_in, d_out
        layer.make = lambda bias: linear(patches.shape[1], d_in, d_out, bias)
        layer.type, layer.bias = layer.make(bias is not None), bias is not None
        layer.shapes = {weight.path: tuple(weight.shape)}
        self.patches, self.rows = patches, "A row of the input is a patch, in the order [channels, height, width]"
        return layer

    def flattened_linear(self, node, before):
        """A Linear over all channels and pixels, which is a convolution whose kernel is the whole sequence or image; or None."""
        image = next((item for item in self.layouts(before) if self.axes.get(item.index) == 1 and torch.equal(
            before.value, item.value.flatten(1))), None)
        if self.axes.get(before.index) is not None or image is None:
            return None
        weight, bias = self.linear_parts(node)[:2]
        extents = tuple(image.shape[2:])
        d_out, d_in = weight.shape[0], image.shape[1]
        layer = self.layer(node, "", *self.weight_and_bias(node, weight, bias))
        layer.kind, layer.weight = "convolution", weight
        layer.make = lambda bias: convolution_type(extents, d_in, d_out, extents, (1,) * len(extents), (0,) * len(extents), 1, False, bias)
        layer.type, layer.bias = layer.make(bias is not None), bias is not None
        layer.shapes = {weight.path: tuple(weight.shape)}
        return [layer], image

    def average_pool(self, node):
        """avg_pool and adaptive_avg_pool, as `last_layer` answers."""
        before = node.args[0]
        extents = self.channels_first(node, before)
        rank = len(extents)
        if node.operation.startswith("adaptive"):
            out = tuple(node.shape[2:])
            if set(out) == {1}:
                return [self.pooled(node, before, "kMean")], before
            if any(extent % count for extent, count in zip(extents, out)):
                raise node.refused("an adaptive average whose windows have different sizes: ")
            kernel = stride = tuple(extent // count for extent, count in zip(extents, out))
        else:
            kernel = pair(self.argument(node, 1, "kernel_size"), rank)
            stride = pair(self.argument(node, 2, "stride") or kernel, rank)
            padding = pair(self.argument(node, 3, "padding", 0), rank)
            fits = all(count == (extent - size) // step + 1 for count, extent, size, step in zip(node.shape[2:], extents, kernel, stride))
            if set(padding) != {0} or not fits or self.argument(node, 6, "divisor_override") is not None:
                raise node.refused("average pooling with padding, ceil_mode or divisor_override: ")
        return [self.layer(node, pool_type(extents, before.shape[1], kernel, stride))], before

    # ---- BatchNorm, and other numbers for each feature ----

    def by_feature(self, node, path):
        """A factor and a bias for each feature: a convolution of one token, of one feature in each group."""
        rows, d_model = self.tokens(node).shape[-2:] if self.tokens(node).dim() > 2 else (1, node.shape[-1])
        layer = self.layer(node, convolution_type((rows,), d_model, d_model, (1,), (1,), (0,), d_model, False, True), path,
                           [f"{path}.weight", f"{path}.bias"])
        layer.kind = "by_feature"
        return layer

    def batch_norm(self, node, source):
        """Folded into the convolution or Linear before it, or a layer by itself, as `last_layer` answers."""
        before, mean, variance = node.args[:3]
        weight, bias, training, _, epsilon = (self.argument(node, index, name, default) for index, name, default in (
            (3, "weight", None), (4, "bias", None), (5, "training", False), (6, "momentum", 0.1), (7, "eps", 1e-5)))
        what = f"BatchNorm {node.path or 'of F.batch_norm'}"
        if mean is None or training:
            raise Unsupported(f"{what} has no running statistics (track_running_stats=False): its numbers depend on the batch\n  {node.line}")
        if node.path in self.recording.in_training:
            raise Unsupported(f"{what} is in training mode, where its numbers depend on the batch: call module.eval() after training")
        if self.axes.get(before.index) != 1:
            raise node.refused(f"{what} of something else than the features of each token: ")
        before = self.origin(before)
        found, rest = self.last_layer(before, source) if before.operation != "input" and before is not source else ([], before)
        layer = found[-1] if found else None
        norm = self.prefix(mean, "running_mean")
        numbers = scale_and_shift(*(item.value if item is not None else None for item in (mean, variance, weight, bias)), epsilon)
        odd = warnings_of(mean.value, (variance.value.double() + epsilon).sqrt(), norm)
        # Neither a layer that another BatchNorm is in, nor one times a constant that comes before.
        folds = layer is not None and getattr(layer, "kind", "") in ("linear", "convolution") and not any(
            getattr(fold, "layer", None) == layer.names[0] for other, fold in self.folds.items() if other != norm) and not any(
            index < node.index for tensor in layer.tensors for index in self.factors.get(tensor, {}))
        if not folds:
            if weight is None or bias is None:
                raise node.refused(f"{what} has no convolution or Linear before it, into which it could be folded, and no weights that could be a "
                                   "layer (affine=False): ")
            self.folds[norm] = Alone(norm, *numbers, warnings=odd)
            return [*found, self.by_feature(node, norm)], rest
        if len(self.recording.names[id(self.tensors[layer.weight.path])]) > 1:
            raise Unsupported(f"{what} follows {layer.path}, whose weight another layer has, too")
        self.folds[norm] = Folded(norm, layer.names[0], *numbers, warnings=odd)
        if not layer.bias:
            layer.type, layer.bias = layer.make(True), True
            layer.tensors.append(f"{layer.names[0]}.bias" if layer.names[0] else "bias")
        layer.output = self.tokens(node)
        return found, rest
