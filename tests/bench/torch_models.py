"""PyTorch's side of the models in models.hpp, in the fastest of its ordinary forms: packed projections of queries, keys
and values, batched products, nn.TransformerEncoderLayer's fused inference where it takes the shape.

A model is built from what attune says of its own (attune_bench_describe) and takes its numbers, so both compute the same.
"""
import torch
from torch import nn
from torch.nn import functional as F

CLASSIFIER, LANGUAGE, ATTENTION = range(3)


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Attention(nn.Module):
    """Heads of any width; keys and values for groups of them; causal and rotated where it is of a language model."""

    def __init__(self, shape):
        super().__init__()
        self.seq_len, self.heads, self.kv_heads, self.width = (
            shape[key] for key in ("seq_len", "num_heads", "num_kv_heads", "d_head"))
        self.language = shape["kind"] == LANGUAGE
        self.packed = nn.Linear(shape["d_model"], (self.heads + 2 * self.kv_heads) * self.width, bias=not self.language)
        self.output = nn.Linear(self.heads * self.width, shape["d_model"], bias=not self.language)
        if self.language:
            # Of each query of a group of heads, which stand under each other.
            hidden = torch.full((self.seq_len, self.seq_len), float("-inf")).triu(1)
            self.register_buffer("mask", hidden.repeat(self.heads // self.kv_heads, 1))
            angles = torch.outer(torch.arange(self.seq_len, dtype=torch.float64),
                                 10000.0 ** (-torch.arange(0, self.width, 2, dtype=torch.float64) / self.width))
            self.register_buffer("cosine", torch.cat([angles.cos()] * 2, -1).float())
            self.register_buffer("sine", torch.cat([angles.sin()] * 2, -1).float())

    def rotated(self, x):
        """Pairs of halves: interleaved ones with the features in another order (load())."""
        low, high = x.chunk(2, -1)
        return x * self.cosine + torch.cat([-high, low], -1) * self.sine

    def forward(self, x):
        batch, n, group = x.shape[0], self.seq_len, self.heads // self.kv_heads
        every = self.packed(x).view(batch, n, self.heads + 2 * self.kv_heads, self.width).transpose(1, 2)
        q, k, v = every.split([self.heads, self.kv_heads, self.kv_heads], 1)
        if self.language:
            q, k = self.rotated(q), self.rotated(k)
        q = (q * self.width**-0.5).reshape(batch * self.kv_heads, group * n, self.width)
        k, v = (part.reshape(batch * self.kv_heads, n, self.width) for part in (k, v))
        if self.language:
            scores = torch.baddbmm(self.mask, q, k.transpose(1, 2))
        else:
            scores = torch.bmm(q, k.transpose(1, 2))
        heads = torch.bmm(scores.softmax(-1), v).view(batch, self.heads, n, self.width)
        return self.output(heads.transpose(1, 2).reshape(batch, n, self.heads * self.width))

    def load(self, tensors, name):
        def rows(part, heads):
            weight = tensors[f"{name}{part}.weight"].t()
            if self.language and part != "value":
                pairs = weight.reshape(heads, self.width // 2, 2, -1)
                weight = pairs.transpose(1, 2).reshape(weight.shape)
            return weight
        parts = ("query", self.heads), ("key", self.kv_heads), ("value", self.kv_heads)
        self.packed.weight.copy_(torch.cat([rows(*part) for part in parts]))
        self.output.weight.copy_(tensors[name + "output.weight"].t())
        if not self.language:
            self.packed.bias.copy_(torch.cat([tensors[f"{name}{part}.bias"][0] for part, _ in parts]))
            self.output.bias.copy_(tensors[name + "output.bias"][0])


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.norm_before, self.language = shape["norm_before"], shape["kind"] == LANGUAGE
        width, hidden = shape["d_model"], shape["d_ff"]
        self.attention = Attention(shape)
        self.norm1, self.norm2 = ((RmsNorm if self.language else nn.LayerNorm)(width) for _ in range(2))
        self.up = nn.Linear(width, (2 if self.language else 1) * hidden, bias=not self.language)  # with the gate
        self.down = nn.Linear(hidden, width, bias=not self.language)

    def network(self, x):
        if self.language:
            gate, up = self.up(x).chunk(2, -1)
            return self.down(F.silu(gate) * up)
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        if self.norm_before:
            x = x + self.attention(self.norm1(x))
            return x + self.network(self.norm2(x))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.network(x))

    def load(self, tensors, name):
        self.attention.load(tensors, name + "self_attention.")
        network = name + "feed_forward."
        if self.language:
            self.up.weight.copy_(torch.cat([tensors[network + part].t() for part in ("gate.weight", "up.weight")]))
            self.down.weight.copy_(tensors[network + "down.weight"].t())
        else:
            load_linear(self.up, tensors, network + "linear1.")
            load_linear(self.down, tensors, network + "linear2.")
        for norm in ("norm1", "norm2"):
            load_norm(getattr(self, norm), tensors, f"{name}{norm}.")


class FusedBlock(nn.Module):
    """A block's numbers in nn.TransformerEncoderLayer, whose inference is one operation."""

    def __init__(self, shape, block):
        super().__init__()
        layer = nn.TransformerEncoderLayer(shape["d_model"], shape["num_heads"], shape["d_ff"], activation="gelu",
                                           batch_first=True, norm_first=bool(shape["norm_before"]))
        attention = layer.self_attn
        attention.in_proj_weight, attention.in_proj_bias = block.attention.packed.weight, block.attention.packed.bias
        attention.out_proj.weight, attention.out_proj.bias = block.attention.output.weight, block.attention.output.bias
        layer.linear1, layer.linear2, layer.norm1, layer.norm2 = block.up, block.down, block.norm1, block.norm2
        self.layer = layer.eval()

    def forward(self, x):
        return self.layer(x)


class FusedAttention(nn.Module):
    """The same of an attention layer alone."""

    def __init__(self, shape, attention):
        super().__init__()
        layer = nn.MultiheadAttention(shape["d_model"], shape["num_heads"], batch_first=True)
        layer.in_proj_weight, layer.in_proj_bias = attention.packed.weight, attention.packed.bias
        layer.out_proj.weight, layer.out_proj.bias = attention.output.weight, attention.output.bias
        self.layer = layer.eval()

    def forward(self, x):
        return self.layer(x, x, x, need_weights=False)[0]


class Model(nn.Module):
    """x [batch, seq_len, d_in], or ids [batch, seq_len], to [batch, outputs, d_out]."""

    def __init__(self, shape):
        super().__init__()
        self.kind = shape["kind"]
        if self.kind == ATTENTION:
            self.attention = Attention(shape)
            return
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape["num_layers"]))
        if self.kind == LANGUAGE:
            self.embedding = nn.Embedding(shape["d_in"], shape["d_model"])
            self.norm = RmsNorm(shape["d_model"])
        else:
            self.embed = nn.Linear(shape["d_in"], shape["d_model"])
            self.positions = nn.Parameter(torch.zeros(shape["seq_len"], shape["d_model"]))
            self.head = nn.Linear(shape["d_model"], shape["d_out"])

    def forward(self, x):
        if self.kind == ATTENTION:
            return self.attention(x)
        x = self.embedding(x) if self.kind == LANGUAGE else self.embed(x) + self.positions
        for layer in self.layers:
            x = layer(x)
        if self.kind == LANGUAGE:
            return F.linear(self.norm(x), self.embedding.weight)
        return self.head(x.mean(1))[:, None]

    def loss(self, x, target):
        y = self(x)
        if self.kind == ATTENTION:
            return F.mse_loss(y, target)
        return F.cross_entropy(y.flatten(0, 1), target.flatten())

    @torch.no_grad()
    def load(self, tensors):
        if self.kind == ATTENTION:
            self.attention.load(tensors, "")
        elif self.kind == LANGUAGE:
            self.embedding.weight.copy_(tensors["embedding.weight"])
            for index, layer in enumerate(self.layers):
                layer.load(tensors, f"body.0.{index}.")
            load_norm(self.norm, tensors, "body.1.")
        else:
            load_linear(self.embed, tensors, "0.")
            load_linear(self.head, tensors, "4.")
            self.positions.copy_(tensors["1.weight"])
            for index, layer in enumerate(self.layers):
                layer.load(tensors, f"2.{index}.")


def load_linear(linear, tensors, name):
    linear.weight.copy_(tensors[name + "weight"].t())
    linear.bias.copy_(tensors[name + "bias"][0])


def load_norm(norm, tensors, name):
    norm.weight.copy_(tensors[name + "weight"][0])
    if isinstance(norm, nn.LayerNorm):
        norm.bias.copy_(tensors[name + "bias"][0])


def fused(shape, model):
    """The model with PyTorch's own layers for inference; None where they do not take the shape."""
    if shape["kind"] == LANGUAGE or shape["num_heads"] % 2 or shape["num_heads"] * shape["d_head"] != shape["d_model"]:
        return None
    other = Model(shape)
    if shape["kind"] == ATTENTION:
        other.attention = FusedAttention(shape, model.attention)
    else:
        other.load_state_dict(model.state_dict())
        other.layers = nn.ModuleList(FusedBlock(shape, layer) for layer in model.layers)
    return other.eval()
