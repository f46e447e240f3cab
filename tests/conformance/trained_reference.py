"""A classifier of nn.Linear, positions, nn.TransformerEncoder, norm, masked mean and nn.Linear in Python's doubles, with
gradients: what PyTorch computes, from the formulas alone, for files that have no gradients in them.

Padding is left out instead of masked. Tensors are the file's: names and layouts of the state_dict.
"""
import math
from operator import mul

from safetensors import Tensor


def dot(a, b):
    return sum(map(mul, a, b))


def zeros(rows):
    return [[0.0] * len(row) for row in rows]


class Node:
    """A matrix, its gradient, and how that goes on to what the matrix was made of."""

    def __init__(self, rows, backward=None):
        self.rows, self.backward, self.gradient = rows, backward, zeros(rows)


def add_to(gradient, factor, values):
    gradient[:] = [g + factor * v for g, v in zip(gradient, values)]


def columns(rows):
    return [list(column) for column in zip(*rows)]


# ---- Functions, with their derivatives ----

def gelu(x):
    phi = 0.5 * math.erfc(-x / math.sqrt(2))
    return x * phi, phi + x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def gelu_tanh(x):
    scale = math.sqrt(2 / math.pi)
    t = math.tanh(scale * (x + 0.044715 * x ** 3))
    return 0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x)


def relu(x):
    return (x, 1.0) if x > 0 else (0.0, 0.0)


def silu(x):
    s = 0.5 * (1 + math.tanh(x / 2))
    return x * s, s * (1 + x * (1 - s))


ACTIVATIONS = {"relu": relu, "silu": silu, "gelu": gelu, "gelu_erf": gelu, "gelu_tanh": gelu_tanh}


class Tape:
    """Nodes in the order of their computation."""

    def __init__(self):
        self._nodes = []

    def node(self, rows, backward=None):
        self._nodes.append(Node(rows, backward))
        return self._nodes[-1]

    def backward(self, output, d_output):
        for node in self._nodes:
            node.gradient = zeros(node.rows)
        output.gradient = d_output
        for node in reversed(self._nodes):
            if node.backward:
                node.backward(node.gradient)

    def linear(self, x, weight, bias):
        b = bias.rows[0] if bias else [0.0] * len(weight.rows)

        def backward(dy):
            d_weight, w_columns = columns(dy), columns(weight.rows)
            x_columns = columns(x.rows)
            for i, row in enumerate(dy):
                add_to(x.gradient[i], 1.0, [dot(row, column) for column in w_columns])
            for j, d_row in enumerate(d_weight):
                add_to(weight.gradient[j], 1.0, [dot(d_row, column) for column in x_columns])
            if bias:
                add_to(bias.gradient[0], 1.0, [sum(d_row) for d_row in d_weight])

        return self.node([[dot(row, w) + b_j for w, b_j in zip(weight.rows, b)] for row in x.rows], backward)

    def add(self, a, b):
        def backward(dy):
            for i, row in enumerate(dy):
                add_to(a.gradient[i], 1.0, row)
                add_to(b.gradient[i], 1.0, row)

        return self.node([[p + q for p, q in zip(*pair)] for pair in zip(a.rows, b.rows)], backward)

    def layer_norm(self, x, weight, bias, epsilon):
        normalized, inverses = [], []
        for row in x.rows:
            mean = sum(row) / len(row)
            inverses.append((sum((value - mean) ** 2 for value in row) / len(row) + epsilon) ** -0.5)
            normalized.append([(value - mean) * inverses[-1] for value in row])
        w = weight.rows[0]
        b = bias.rows[0] if bias else [0.0] * len(w)

        def backward(dy):
            for i, (row, n) in enumerate(zip(dy, normalized)):
                add_to(weight.gradient[0], 1.0, map(mul, row, n))
                if bias:
                    add_to(bias.gradient[0], 1.0, row)
                g = list(map(mul, row, w))
                mean, slope = sum(g) / len(g), dot(g, n) / len(g)
                add_to(x.gradient[i], inverses[i], [g_j - mean - n_j * slope for g_j, n_j in zip(g, n)])

        return self.node([[n_j * w_j + b_j for n_j, w_j, b_j in zip(n, w, b)] for n in normalized], backward)

    def attention(self, qkv, heads):
        """Of queries, keys and values side by side."""
        tokens, width = len(qkv.rows), len(qkv.rows[0]) // 3
        d_k = width // heads

        def part(rows, which, head):
            first = which * width + head * d_k
            return [row[first:first + d_k] for row in rows]

        weights = []
        result = [[] for _ in range(tokens)]
        for head in range(heads):
            q, k, v = (part(qkv.rows, which, head) for which in range(3))
            rows = []
            for query in q:
                scores = [dot(query, key) / math.sqrt(d_k) for key in k]
                exponentials = [math.exp(score - max(scores)) for score in scores]
                total = sum(exponentials)
                rows.append([e / total for e in exponentials])
            weights.append(rows)
            v_columns = columns(v)
            for i, row in enumerate(rows):
                result[i] += [dot(row, column) for column in v_columns]

        def backward(dy):
            for head in range(heads):
                q, k, v = (part(qkv.rows, which, head) for which in range(3))
                d_context = part(dy, 0, head)
                d = [zeros(m) for m in (q, k, v)]
                for i, (row, d_row) in enumerate(zip(weights[head], d_context)):
                    d_weights = [dot(d_row, value) for value in v]
                    mean = dot(row, d_weights)
                    for j, p in enumerate(row):
                        d_score = p * (d_weights[j] - mean) / math.sqrt(d_k)
                        add_to(d[0][i], d_score, k[j])
                        add_to(d[1][j], d_score, q[i])
                        add_to(d[2][j], p, d_row)
                for which in range(3):
                    first = which * width + head * d_k
                    for target, values in zip(qkv.gradient, d[which]):
                        target[first:first + d_k] = [t + value for t, value in zip(target[first:first + d_k], values)]

        return self.node(result, backward)

    def activation(self, x, function):
        pairs = [[function(value) for value in row] for row in x.rows]

        def backward(dy):
            for i, row in enumerate(dy):
                add_to(x.gradient[i], 1.0, [g * slope for g, (_, slope) in zip(row, pairs[i])])

        return self.node([[value for value, _ in row] for row in pairs], backward)

    def mean(self, x):
        count = len(x.rows)

        def backward(dy):
            for row in x.gradient:
                add_to(row, 1 / count, dy[0])

        return self.node([[sum(column) / count for column in zip(*x.rows)]], backward)


class Classifier:
    """`tensors`: the state_dict by its names."""

    def __init__(self, tensors, layers, heads, activation, norm_first, epsilon):
        self.tensors, self.layers, self.heads, self.norm_first = tensors, layers, heads, norm_first
        self.activation, self.epsilon = ACTIVATIONS[activation], epsilon

    def _forward(self, tape, leaves, tokens):
        def linear(x, weight, bias):
            return tape.linear(x, leaves[weight], leaves.get(bias))

        def norm(x, name):
            return tape.layer_norm(x, leaves[name + ".weight"], leaves.get(name + ".bias"), self.epsilon)

        def attend(x, layer):
            packed = linear(x, layer + "self_attn.in_proj_weight", layer + "self_attn.in_proj_bias")
            return linear(tape.attention(packed, self.heads), layer + "self_attn.out_proj.weight",
                          layer + "self_attn.out_proj.bias")

        def network(x, layer):
            hidden = tape.activation(linear(x, layer + "linear1.weight", layer + "linear1.bias"), self.activation)
            return linear(hidden, layer + "linear2.weight", layer + "linear2.bias")

        x = linear(tape.node(tokens), "embed.weight", "embed.bias")
        if "pos" in leaves:
            x = tape.add(x, leaves["pos"])
        for i in range(self.layers):
            layer = f"encoder.layers.{i}."
            for part, name in ((attend, "norm1"), (network, "norm2")):
                if self.norm_first:
                    x = tape.add(x, part(norm(x, layer + name), layer))
                else:
                    x = norm(tape.add(x, part(x, layer)), layer + name)
        if "norm.weight" in leaves:
            x = norm(x, "norm")
        return linear(tape.mean(x), "head.weight", "head.bias")

    def _leaves(self, tape, length):
        leaves = {}
        for name, tensor in self.tensors.items():
            size = tensor.shape[-1]
            rows = [tensor.values[i:i + size] for i in range(0, len(tensor.values), size)]
            leaves[name] = tape.node(rows[:length] if name == "pos" else rows)
        return leaves

    def logits(self, tokens):
        """Of one sequence, its real tokens."""
        tape = Tape()
        return self._forward(tape, self._leaves(tape, len(tokens)), tokens).rows[0]

    def gradients(self, sequences, labels):
        """Of the sum of cross-entropies: {name: Tensor}, and {name: what its rounding errors are relative to}.

        The latter are gradients, too, without what cancels between sequences: of p - [c = label], p is rounded, and the
        logits that it comes from, whose errors grow with the largest of them and reach it by p (1 - p).
        """
        gradients = {name: [0.0] * len(tensor.values) for name, tensor in self.tensors.items()}
        magnitudes = dict.fromkeys(self.tensors, 0.0)
        for tokens, label in zip(sequences, labels):
            tape = Tape()
            leaves = self._leaves(tape, len(tokens))
            output = self._forward(tape, leaves, tokens)
            logits = output.rows[0]
            exponentials = [math.exp(x - max(logits)) for x in logits]
            share = [e / sum(exponentials) for e in exponentials]
            hit = [float(c == label) for c in range(len(logits))]
            tape.backward(output, [[p - h for p, h in zip(share, hit)]])
            for name, leaf in leaves.items():
                flat = [value for row in leaf.gradient for value in row]
                add = gradients[name]
                for i, value in enumerate(flat):
                    add[i] += value
            largest = max(map(abs, logits))
            tape.backward(output, [[p * (1 + (1 - p) * largest) for p in share]])
            for name, leaf in leaves.items():
                magnitudes[name] += max(abs(value) for row in leaf.gradient for value in row)
        return ({name: Tensor(tensor.dtype, tensor.shape, gradients[name]) for name, tensor in self.tensors.items()},
                magnitudes)
