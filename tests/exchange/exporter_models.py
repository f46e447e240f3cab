"""Models as people write them in PyTorch, each with a batch of inputs: what attune_torch is to recognize, and what not."""
import math
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    """torch.nn's own encoder between linear layers."""

    def __init__(self, tokens=5, d_in=4, width=8, heads=2, depth=2, before=False, activation="gelu", classes=3):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, batch_first=True, activation=activation, norm_first=before)
        self.embed = nn.Linear(d_in, width)
        self.pos = nn.Parameter(0.1 * torch.randn(1, tokens, width))
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.embed(x) + self.pos
        return self.head(self.norm(self.encoder(x)).mean(1))


class Block(nn.Module):
    """A block with packed projections and attention that is written out, as timm's."""

    def __init__(self, width, heads, bias=True):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.proj = nn.Linear(width, 3 * width, bias=bias), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * width, width))

    def attend(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, tokens, width))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Vision(nn.Module):
    """Blocks, positions from a table, and the first token for the class."""

    def __init__(self, tokens=7, width=8, depth=3, heads=2):
        super().__init__()
        self.patch = nn.Linear(6, width)
        self.positions = nn.Embedding(tokens + 2, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(depth)])
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.patch(x)
        x = x + self.positions(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, 0])


class LayerScale(nn.Module):
    """timm's, also in place."""

    def __init__(self, width, initial, inplace=False):
        super().__init__()
        self.inplace, self.gamma = inplace, nn.Parameter(initial * torch.ones(width))

    def forward(self, x):
        return x.mul_(self.gamma) if self.inplace else x * self.gamma


class VitLayer(nn.Module):
    """timm's Block: names and forward as in its vision_transformer.py."""

    def __init__(self, width, heads, scale=None):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn = nn.ModuleDict({"qkv": nn.Linear(width, 3 * width), "proj": nn.Linear(width, width)})
        self.mlp = nn.Sequential(OrderedDict(fc1=nn.Linear(width, 2 * width), act=nn.GELU(), drop1=nn.Dropout(0.1), norm=nn.Identity(),
                                             fc2=nn.Linear(2 * width, width), drop2=nn.Dropout(0.1)))
        self.ls1, self.ls2 = (LayerScale(width, scale, inplace) if scale else nn.Identity() for inplace in (False, True))
        self.heads = heads

    def attend(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.attn["qkv"](x).reshape(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q * (width // self.heads) ** -0.5 @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.attn["proj"]((weights @ v).transpose(1, 2).reshape(batch, tokens, width))

    def forward(self, x):
        x = x + self.ls1(self.attend(self.norm1(x)))
        return x + self.ls2(self.mlp(self.norm2(x)))


class Image(nn.Module):
    """timm's VisionTransformer: a convolution cuts patches, a class token stands in front, LayerScale ends the branches."""

    def __init__(self, size=8, patch=4, channels=3, width=8, depth=2, heads=2, classes=5, scale=0.5):
        super().__init__()
        self.patch_embed = nn.Sequential(OrderedDict(proj=nn.Conv2d(channels, width, patch, stride=patch)))
        self.cls_token = nn.Parameter(0.1 * torch.randn(1, 1, width))
        self.pos_embed = nn.Parameter(0.1 * torch.randn(1, (size // patch) ** 2 + 1, width))
        self.blocks = nn.Sequential(*[VitLayer(width, heads, scale) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


class Sensor(nn.Module):
    """Windows of a signal by a convolution, torch.nn's encoder, the mean."""

    def __init__(self):
        super().__init__()
        self.windows = nn.Conv1d(3, 8, 5, stride=5, bias=False)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.encoder(self.windows(x).permute(0, 2, 1)).mean(dim=1))


def with_statistics(module):
    """The module in evaluation, every BatchNorm with drawn statistics and weights."""
    for norm in module.modules():
        if isinstance(norm, nn.modules.batchnorm._BatchNorm):
            norm.running_mean.normal_(), norm.running_var.uniform_(0.5, 2)
            if norm.affine:
                nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)
    return module.eval()


class Signal(nn.Module):
    """A signal through convolutions with stride, padding and groups, BatchNorms, causal ones in both spellings, a skip, averages."""

    def __init__(self, d_in=3, width=8, classes=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(d_in, width, 5, stride=2, padding=2, bias=False), nn.BatchNorm1d(width), nn.SiLU())
        self.depthwise, self.pointwise = nn.Conv1d(width, width, 3, padding=1, groups=width), nn.Conv1d(width, width, 1)
        self.norm = nn.BatchNorm1d(width)
        self.padded, self.cut = nn.Conv1d(width, width, 3), nn.Conv1d(width, width, 4, padding=3, groups=2)
        self.pool, self.head = nn.AvgPool1d(2), nn.Linear(width, classes)

    def forward(self, x):
        x = F.relu(self.norm(self.pointwise(self.depthwise(self.stem(x))))).square()
        x = self.padded(F.pad(x, (2, 0)))
        x = x + self.cut(x * torch.sigmoid(1.702 * x))[:, :, :-3]
        return self.head(F.adaptive_avg_pool1d(self.pool(x), 1).squeeze(-1))


class Picture(nn.Module):
    """An image through convolutions, averages and a Linear of all channels and pixels."""

    def __init__(self, height=6, width=8):
        super().__init__()
        self.first, self.second = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 6, (3, 2), stride=(2, 1), groups=2)
        self.norm = nn.BatchNorm2d(4, affine=False)
        self.hidden, self.head = nn.Linear(6 * (((height // 2) - 3) // 2 + 1) * (width // 2 - 1), 5), nn.Linear(5, 3)

    def forward(self, x):
        x = F.avg_pool2d(torch.tanh(self.norm(self.first(x))), 2)
        return self.head(torch.sigmoid(self.hidden(torch.flatten(self.second(x), 1))))


class Idioms(nn.Module):
    """Normalized inputs, constant factors, a BatchNorm behind an activation, a sum that is a mean, and an output without its only feature."""

    def __init__(self, width=8):
        super().__init__()
        self.register_buffer("mean", torch.randn(4)), self.register_buffer("std", torch.rand(4) + 0.2)
        self.inward, self.branch, self.norm = nn.Linear(4, width), nn.Linear(width, width), nn.LayerNorm(width)
        self.attend, self.after, self.head = nn.MultiheadAttention(width, 2, batch_first=True), nn.BatchNorm1d(width), nn.Linear(width, 1)

    def forward(self, x):
        x = self.inward((x - self.mean) / self.std) * math.sqrt(8)
        x = x + 0.5 * self.attend(x, x, x, need_weights=False)[0]
        x = x + self.branch(self.norm(x) * 0.3) / 4
        x = self.after(F.relu(x).transpose(1, 2)).transpose(1, 2)
        return self.head(x.sum(1) / x.shape[1]).squeeze(-1)


class NormalizedPicture(nn.Module):
    """An image whose channels are normalized, and BatchNorms that no layer in front of them can take."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.randn(3, 1, 1)), self.register_buffer("std", torch.rand(3, 1, 1) + 0.2)
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), Step(lambda x: -2 * x), nn.ReLU(), nn.BatchNorm2d(4),
                                    nn.Conv2d(4, 4, 3, padding=1, bias=False), Step(lambda x: x / 3), nn.BatchNorm2d(4), nn.AvgPool2d(2),
                                    nn.BatchNorm2d(4), nn.BatchNorm2d(4), nn.Flatten())
        self.head = nn.Linear(36, 3)

    def forward(self, x):
        return self.head(self.layers((x - self.mean) / self.std)) / 3


class ScaledWords(nn.Module):
    """An embedding times the root of its width, as in "Attention is all you need"; one output for each token."""

    def __init__(self, width=8):
        super().__init__()
        self.table, self.positions, self.head = nn.Embedding(9, width), nn.Parameter(torch.randn(6, width)), nn.Linear(width, 1)

    def forward(self, ids):
        return self.head(self.table(ids) * self.table.embedding_dim ** 0.5 + self.positions)[..., 0]


class Constants(nn.Module):
    """A step with buffers, constants and a parameter of one number; a Linear behind it."""

    def __init__(self, step, far=False, head=True, **buffers):
        super().__init__()
        self.register_buffer("mean", torch.rand(4) + 1), self.register_buffer("std", torch.rand(4) + 0.3), self.register_buffer("table", torch.rand(5, 4))
        for name, numbers in buffers.items():
            self.register_buffer(name, numbers)
        if far:
            self.mean *= 1e5
        self.scalar, self.first, self.one, self.head = nn.Parameter(torch.rand(1)), nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 2) if head else nn.Identity()
        self.step = step

    def forward(self, x):
        return self.head(self.step(self, x))


class AfterBlock(nn.Module):
    """nn.MultiheadAttention, norms after each part."""

    def __init__(self, width, heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)

    def forward(self, x):
        attended, _ = self.attn(x, x, x, need_weights=False)
        x = self.ln1(x + attended)
        return self.ln2(x + self.down(F.relu(self.up(x))))


class BranchFirst(AfterBlock):
    """Sums with the branch in front, as BERT's."""

    def forward(self, x):
        x = self.ln1(self.attn(x, x, x, need_weights=False)[0] + x)
        return self.ln2(self.down(F.relu(self.up(x))) + x)


class Recurrent(nn.Module):
    """A cell that goes through the tokens."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        state = None
        for token in x.unbind(1):
            state = self.cell(token, state)
        return self.head(state)


class Forecaster(nn.Module):
    """Blocks of one's own on sinusoidal positions that are no parameters; an answer for every token."""

    def __init__(self, tokens=6, width=8):
        super().__init__()
        self.inward = nn.Linear(2, width)
        angles = torch.arange(tokens)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
        table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        self.register_buffer("table", table, persistent=False)
        self.first, self.second = AfterBlock(width, 2), AfterBlock(width, 2)
        self.outward = nn.Linear(width, 1)

    def forward(self, x):
        x = self.inward(x) + self.table[: x.size(1)]
        return self.outward(self.second(self.first(x)))


class RMSNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.rand(width) + 0.5), eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class BiaslessNorm(nn.Module):
    """nanoGPT's LayerNorm."""

    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.rand(width) + 0.5), None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class Norm(nn.Module):
    """RMSNorm, or LayerNorm without a bias, whose epsilon is in forward alone."""

    def __init__(self, mean, width=8):
        super().__init__()
        self.mean, self.weight = mean, nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True) if self.mean else x
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class NanoBlock(nn.Module):
    """nanoGPT's Block: dropout on attention weights, a mask in a buffer, no biases."""

    def __init__(self, width, heads, tokens):
        super().__init__()
        self.ln_1, self.ln_2, self.heads, self.drop = BiaslessNorm(width), BiaslessNorm(width), heads, nn.Dropout(0.1)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 2 * width, bias=False), nn.Linear(2 * width, width, bias=False)
        self.register_buffer("mask", torch.tril(torch.ones(tokens, tokens)).bool(), persistent=False)

    def attend(self, x):
        batch, tokens, width = x.shape
        q, k, v = (part.view(batch, tokens, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).split(width, dim=2))
        weights = (q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])).masked_fill(~self.mask, -math.inf)
        weights = self.drop(F.softmax(weights, dim=-1))
        return self.drop(self.c_proj((weights @ v).transpose(1, 2).contiguous().view(batch, tokens, width)))

    def forward(self, x):
        x = x + self.attend(self.ln_1(x))
        return x + self.drop(self.down(F.gelu(self.up(self.ln_2(x)))))


class Named(nn.Module):
    """nanoGPT's blocks between layers whose names say something else: positions that do not sound like them, and the other way around.
    Attributes as an OnnxModule's.
    Attention also stands outside of a block."""

    def __init__(self, tokens=6, width=8):
        super().__init__()
        self.position, self.time_table = nn.Linear(4, width), nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList([NanoBlock(width, 2, tokens) for _ in range(2)])
        self.norm, self.mix, self.post, self.rotary_bases = BiaslessNorm(width), AttentionAlone(), nn.Linear(width, 3), None

    def forward(self, x):
        x = self.position(x) + self.time_table(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.post(self.mix(self.norm(x)))


class LlamaAttention(nn.Module):
    def __init__(self, width, heads, kv_heads, theta):
        super().__init__()
        self.heads, self.kv_heads, self.rope_theta, self.interleaved = heads, kv_heads, theta, False
        head = width // heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, head * kv_heads, bias=False)
        self.v_proj = nn.Linear(width, head * kv_heads, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def rotate(self, x):
        head = x.shape[-1]
        angles = torch.arange(x.shape[2])[:, None] * self.rope_theta ** (-torch.arange(0, head, 2) / head)
        if self.interleaved:
            cos, sin, a, b = angles.cos(), angles.sin(), x[..., 0::2], x[..., 1::2]
            return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
        cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
        half = torch.cat([-x[..., head // 2:], x[..., : head // 2]], -1)
        return x * cos + half * sin

    def forward(self, x):
        batch, tokens, width = x.shape

        def heads(y):
            return y.view(batch, tokens, -1, width // self.heads).transpose(1, 2)

        q, k, v = self.rotate(heads(self.q_proj(x))), self.rotate(heads(self.k_proj(x))), heads(self.v_proj(x))
        k, v = (y.repeat_interleave(self.heads // self.kv_heads, 1) for y in (k, v))
        mask = torch.full((tokens, tokens), -math.inf).triu(1)
        weights = F.softmax(q @ k.transpose(2, 3) / math.sqrt(width // self.heads) + mask, dim=-1)
        return self.o_proj((weights @ v).transpose(1, 2).contiguous().view(batch, tokens, width))


class LlamaNetwork(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = (nn.Linear(width, 2 * width, bias=False),
                                                        nn.Linear(width, 2 * width, bias=False),
                                                        nn.Linear(2 * width, width, bias=False))

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaLayer(nn.Module):
    def __init__(self, width, heads, kv_heads, theta):
        super().__init__()
        self.self_attn, self.mlp = LlamaAttention(width, heads, kv_heads, theta), LlamaNetwork(width)
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(width), RMSNorm(width)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """Hugging Face's names: grouped heads, rotary positions, RMSNorm, SwiGLU; tied or not."""

    def __init__(self, vocabulary=20, width=16, depth=2, heads=4, kv_heads=2, theta=10000.0, tied=False):
        super().__init__()
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(vocabulary, width)
        self.model.layers = nn.ModuleList([LlamaLayer(width, heads, kv_heads, theta) for _ in range(depth)])
        self.model.norm = RMSNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, ids):
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x)
        return self.lm_head(self.model.norm(x))


class Causal(nn.Module):
    """torch.nn's encoder with a causal mask: a language model."""

    def __init__(self, tokens=6, vocabulary=17, width=8):
        super().__init__()
        self.embed, self.pos = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
        layer = nn.TransformerEncoderLayer(width, 2, 16, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        tokens = ids.shape[1]
        mask = torch.triu(torch.ones(tokens, tokens, dtype=torch.bool), 1)
        x = self.embed(ids) + self.pos(torch.arange(tokens))
        return self.head(self.blocks(x, mask=mask))


@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 * (1.0 + torch.erf(x * 0.7071067811865476))


class Scripted(nn.Module):
    def forward(self, x):
        return scripted(x)


class Gate(nn.Module):
    """Leaves its branch out where numbers are large."""

    def __init__(self):
        super().__init__()
        self.norm, self.branch = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x):
        return x if x.abs().max() > 1e6 else x + self.branch(self.norm(x))


class Hinted(nn.Module):
    """Parts that cannot be recorded, and Python beside them."""

    def __init__(self):
        super().__init__()
        self.inward, self.act, self.gate, self.outward, self.spare = nn.Linear(4, 8), Scripted(), Gate(), nn.Linear(8, 2), nn.Identity()

    def forward(self, x):
        return self.outward(self.gate(self.act(self.inward(x))))

    @staticmethod
    def hints():
        return {"act": lambda module, x: F.gelu(x), "gate": lambda module, x: x + module.branch(module.norm(x))}


def hint_with_a_cube(module, x):
    return F.gelu(x.pow(3).sign() * x.abs())


class TwoInputs(nn.Module):
    """Two kinds of ids, and what is made of their embeddings."""

    def __init__(self, step, tied=False):
        super().__init__()
        self.first, self.second, self.head, self.step = nn.Embedding(7, 8), nn.Embedding(5, 8), nn.Linear(8, 7), step
        if tied:
            self.head.weight = self.first.weight

    def forward(self, first, second):
        return self.head(self.step(self.first(first), self.second(second)))


class Ignoring(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x, mask):
        return self.head(x)


class Translator(nn.Module):
    """torch.nn's Transformer between embeddings and a head."""

    def __init__(self, before=True, activation="relu", source=6, target=4, width=8, heads=2, depth=2, mask=True, same=False, tied=False):
        super().__init__()
        self.source, self.target, self.mask, self.same = nn.Embedding(11, width), nn.Embedding(9, width), mask, same
        self.source_pos, self.target_pos = (nn.Parameter(0.1 * torch.randn(1, tokens, width)) for tokens in (source, target))
        self.transformer = nn.Transformer(width, heads, depth, depth, 2 * width, activation=activation, batch_first=True, norm_first=before)
        self.head = nn.Linear(width, 9)
        if tied:
            self.head.weight = self.target.weight

    def forward(self, source, target=None):
        x = self.source(source) + self.source_pos
        y = self.source(source) if self.same else self.target(target) + self.target_pos
        mask = nn.Transformer.generate_square_subsequent_mask(y.shape[1]) if self.mask else None
        return self.head(self.transformer(x, y, tgt_mask=mask))

    def sample(self, batch=3):
        ids = [torch.randint(0, 9, (batch, part.shape[1])) for part in (self.source_pos, self.target_pos)]
        return ids[:1] if self.same else tuple(ids)


class Scaled(nn.Module):
    """Attention with another scale than 1 / sqrt(d_k), which small weights do not show."""

    def __init__(self, scale=1.0, small=1.0):
        super().__init__()
        self.qkv, self.out, self.scale = nn.Linear(8, 24), nn.Linear(8, 8), scale
        self.qkv.weight.data *= small

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, 2, width // 2).permute(2, 0, 3, 1, 4).unbind(0)
        return self.out(((q @ k.transpose(-1, -2) * self.scale).softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, width))


class ZeroQueries(nn.Module):
    """A block whose queries are 0 at first, and could be keys by their numbers."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
        self.key, self.query, self.value, self.out = (nn.Linear(8, 8) for _ in range(4))
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.query.weight.data.zero_(), self.query.bias.data.zero_()

    def forward(self, x):
        y = self.norm1(x)
        q, k, v = (part.view(*y.shape[:2], 2, 4).transpose(1, 2) for part in (self.query(y), self.key(y), self.value(y)))
        weights = (q @ k.transpose(-1, -2) / 2).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).flatten(2))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class AttentionAlone(nn.Module):
    """Attention with projections of its own, without a network behind it."""

    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return x + self.proj((q @ k.transpose(1, 2) / 8 ** 0.5).softmax(-1) @ v)


def is_padding(ids):
    return ids == 0


def hidden_by(mask, heads=2):
    """A mask [batch, tokens] of what is hidden, as nn.MultiheadAttention takes it."""
    return mask[:, None, :].expand(-1, mask.shape[1], -1).repeat_interleave(heads, 0)


class MaskedWords(nn.Module):
    """Words whose encoder hides what `mask` answers for the ids."""

    def __init__(self, mask):
        super().__init__()
        self.table, self.mask, self.head = nn.Embedding(9, 8), mask, nn.Linear(8, 3)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1, enable_nested_tensor=False)

    def forward(self, ids):
        return self.head(self.encoder(self.table(ids), mask=self.mask(ids))[:, 0])


class MaskedRows(nn.Module):
    """nn.MultiheadAttention that hides tokens whose numbers are all zero."""

    def __init__(self):
        super().__init__()
        self.attend, self.head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 3)

    def forward(self, x):
        hidden = hidden_by(x.abs().amax(-1) == 0)
        return self.head((x + self.attend(x, x, x, attn_mask=hidden, need_weights=False)[0])[:, 0])


class MaskedTranslator(nn.Module):
    """nn.Transformer that hides the target's id 0 beside what comes later."""

    def __init__(self):
        super().__init__()
        self.source, self.target, self.head = nn.Embedding(9, 8), nn.Embedding(9, 8), nn.Linear(8, 9)
        self.inner = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)

    def forward(self, source, target):
        hidden = hidden_by(target == 0) | torch.triu(torch.ones(target.shape[1], target.shape[1], dtype=torch.bool), 1)
        return self.head(self.inner(self.source(source), self.target(target), tgt_mask=hidden))


class WrittenAttention(nn.Module):
    """Attention written out, whose scores `change` may change, with what it needs from `self`."""

    def __init__(self, change):
        super().__init__()
        self.q, self.k, self.v, self.proj = (nn.Linear(8, 8) for _ in range(4))
        self.bias, self.temperature, self.change = nn.Parameter(torch.zeros(6, 6)), nn.Parameter(torch.tensor(8 ** 0.5)), change

    def forward(self, x, ids):
        scores = self.change(self, self.q(x) @ self.k(x).transpose(1, 2), ids)
        return self.proj(scores.softmax(-1) @ self.v(x))


class CosineAttention(nn.Module):
    """Cosines as scores, times a trained scale of each head that ends at 100, as in Swin V2."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.proj = (nn.Linear(8, 8) for _ in range(4))
        self.logit_scale = nn.Parameter(torch.tensor([2.0, 1.5]).view(2, 1, 1))

    def forward(self, x):
        q, k, v = (layer(x).view(-1, x.shape[1], 2, 4).transpose(1, 2) for layer in (self.q, self.k, self.v))
        scores = nn.functional.normalize(q, dim=-1) @ nn.functional.normalize(k, dim=-1).transpose(-2, -1)
        weights = (scores * torch.clamp(self.logit_scale, max=math.log(100)).exp()).softmax(-1)
        return x + self.proj((weights @ v).transpose(1, 2).reshape(-1, x.shape[1], 8))


class WrittenWords(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.table, self.norm, self.attend, self.head = nn.Embedding(9, 8), nn.LayerNorm(8), WrittenAttention(change), nn.Linear(8, 3)

    def forward(self, ids):
        x = self.table(ids)
        return self.head((x + self.attend(self.norm(x), ids))[:, 0])


class Padded(nn.Module):
    """Attention with a padding mask."""

    def __init__(self):
        super().__init__()
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return x + self.attend(x, x, x, key_padding_mask=torch.arange(x.shape[1]).expand(x.shape[:2]) > 3, need_weights=False)[0]


class Padless(Padded):
    def forward(self, x):
        return x + self.attend(x, x, x, need_weights=False)[0]


class PaddedEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1)

    def forward(self, x):
        return self.encoder(x, src_key_padding_mask=x[:, :, 0] == 0)


class TokenScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.gamma = nn.Parameter(torch.rand(5, 8))

    def forward(self, x):
        return x * self.gamma


class NormedSkip(nn.Module):
    """A value that a BatchNorm and a sum take."""

    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Conv1d(8, 8, 1), nn.BatchNorm1d(8)

    def forward(self, x):
        x = self.layer(x.transpose(1, 2))
        return (x + torch.relu(self.norm(x))).transpose(1, 2)


class UsedTwice(NormedSkip):
    """A convolution that BatchNorm follows once of twice."""

    def forward(self, x):
        return self.layer(self.norm(self.layer(x.transpose(1, 2)))).transpose(1, 2)


class WrittenOut(nn.Module):
    """Norms and activations as formulas. `step` is one of `formulas`."""

    def __init__(self, step, bias=True, width=8):
        super().__init__()
        self.inward, self.outward = nn.Linear(4, width), nn.Linear(width, 2)
        self.norm = nn.LayerNorm(width) if bias else RMSNorm(width)
        self.step = step

    def forward(self, x):
        return self.outward(self.step(self.inward(x), self.norm.weight, getattr(self.norm, "bias", None)))


def formulas():
    """name -> (a formula, the same by PyTorch's function, whether it has a bias; None where it has no weights)"""
    def centered(x):
        return x - x.mean(-1, keepdim=True)

    def root(x, epsilon=1e-5):
        return torch.sqrt(x.pow(2).mean(-1, keepdim=True) + epsilon)

    def layer_norm(x, weight, bias, epsilon=1e-5):
        return F.layer_norm(x, (x.shape[-1],), weight, bias, epsilon)

    return {
        "GELU": (lambda x, w, b: x * 0.5 * (1 + torch.erf(x / math.sqrt(2.0))), lambda x, w, b: F.gelu(x), None),
        "GELU by tanh": (lambda x, w, b: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3)))),
                         lambda x, w, b: F.gelu(x, approximate="tanh"), None),
        "SiLU": (lambda x, w, b: x * torch.sigmoid(x), lambda x, w, b: F.silu(x), None),
        "SiLU by exp": (lambda x, w, b: x / (1 + torch.exp(-x)), lambda x, w, b: F.silu(x), None),
        "ReLU": (lambda x, w, b: x.clamp(min=0), lambda x, w, b: F.relu(x), None),
        "LayerNorm": (lambda x, w, b: centered(x) / root(centered(x)) * w + b, layer_norm, True),
        "LayerNorm, another epsilon": (lambda x, w, b: w * centered(x) * (1 / root(centered(x), 1e-6)) + b,
                                       lambda x, w, b: layer_norm(x, w, b, 1e-6), True),
        "RMSNorm": (lambda x, w, b: w * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)),
                    lambda x, w, b: x / root(x) * w, False),
    }


def no_formulas():
    """name -> (a formula that is close to one of PyTorch's, at least while weights are new, but none of them; its bias)"""
    return {
        "a sigmoid of a square": (lambda x, w, b: x * torch.sigmoid(x * x), None),
        "a norm divided by its weight": (lambda x, w, b: F.layer_norm(x, (8,)) / w + b, True),
        "a norm with 1 - weight": (lambda x, w, b: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * (1 - w), False),
    }


def perceptron():
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 2))


class Unknown(nn.Module):
    """A step that attune has no layer for."""

    def __init__(self, step):
        super().__init__()
        self.inward, self.outward, self.step = nn.Linear(4, 8), nn.Linear(8, 2), step

    def forward(self, x):
        x = self.inward(x)
        x = self.step(x)
        return self.outward(x)


def interleaved_llama():
    """With rotary positions of neighbors, as the paper has them."""
    model = Llama(depth=1)
    for layer in model.model.layers:
        layer.self_attn.interleaved = True
    return model


class Step(nn.Module):
    """A function as a module without parameters."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def failing(x):
    raise ValueError("not today")


class Second(nn.Module):
    """nanoGPT's outputs: logits, and a loss that is None."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(5, 2)

    def forward(self, x, targets=None):
        return self.head(x), None


def rearranged():
    """(name, module, batch of inputs, the inputs in the order in which the first layer takes them)"""
    x, image = torch.randn(3, 1, 6, 8), torch.randn(3, 2, 8, 8)

    def patches(y):
        return y.reshape(3, 2, 2, 4, 2, 4).permute(0, 2, 4, 3, 5, 1).reshape(3, 4, 32)
    return [("an image as a sequence of rows", nn.Sequential(Step(lambda y: y.squeeze(1)), nn.Linear(8, 5)), x, x[:, 0]),
            ("patches that are cut by reshape", nn.Sequential(Step(patches), nn.Linear(32, 5)), image, patches(image)),
            ("an image as one row", nn.Sequential(nn.Flatten(), nn.Linear(128, 5)), image, image.reshape(3, 1, 128))]


def changed_in_part(x):
    x[:, 0] = 0
    return x


def changed_by_a_view(x):
    x[..., :4].mul_(2)
    return x


class Twice(nn.TransformerEncoderLayer):
    """A forward of its own around PyTorch's."""

    def forward(self, x, *args, **kwargs):
        return 2 * super().forward(x, *args, **kwargs)


class NormOfSquares(nn.LayerNorm):
    """Whose weight is squared."""

    def forward(self, x):
        return F.layer_norm(x, self.normalized_shape, self.weight.square(), self.bias, self.eps)


def exchanged(change):
    """An nn.TransformerEncoderLayer of which `change(layer)` has exchanged a part."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    change(layer)
    return layer


class Masked(nn.Module):
    """torch.nn's attention or encoder layer with a mask, from queries to keys or for each head."""

    def __init__(self, mask, alone=False, output=0):
        super().__init__()
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True) if alone else nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.mask, self.alone, self.output = mask, alone, output

    def forward(self, x):
        return self.attend(x, x, x, attn_mask=self.mask)[self.output] if self.alone else self.attend(x, self.mask)


class Borrowed(nn.Module):
    """A layer with the bias of another one, or with one that is computed."""

    def __init__(self, bias):
        super().__init__()
        self.first, self.second, self.bias = nn.Linear(8, 8), nn.Linear(8, 8), bias

    def forward(self, x):
        return F.linear(x, self.first.weight, self.bias(self))


class DecoderAlone(nn.Module):
    """A decoder layer whose memory is an input."""

    def __init__(self):
        super().__init__()
        self.inward, self.layer = nn.Linear(4, 8), nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)

    def forward(self, memory, x):
        return self.layer(self.inward(x), memory, tgt_mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1]))


class TiedAside(nn.Module):
    """A weight of two layers with biases of their own, of which one is called."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(5, 8), nn.Linear(5, 8), nn.Linear(8, 2)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.head(torch.relu(self.second(x)))


class Noise(nn.Module):
    """A parameter that is not the same for each sample."""

    def __init__(self):
        super().__init__()
        self.noise = nn.Parameter(torch.randn(2, 5, 8))

    def forward(self, x):
        return x + self.noise


class Skip(nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)


class Pairs(nn.Module):
    """Words, types, positions, a norm, and torch.nn's encoder; the mean, the first or all tokens."""

    def __init__(self, tokens, width, heads, depth, classes, pooled):
        super().__init__()
        self.words, self.types, self.pos = nn.Embedding(19, width), nn.Embedding(3, width), nn.Embedding(tokens + 1, width)
        self.norm, self.head, self.pooled = nn.LayerNorm(width, eps=1e-12), nn.Linear(width, classes), pooled
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, depth)

    def forward(self, ids, types):
        x = self.words(ids) + self.types(types)
        x = self.encoder(self.norm(x + self.pos(torch.arange(ids.shape[1]))))
        return self.head(x.mean(1) if self.pooled == "mean" else x[:, 0] if self.pooled == "first" else x)


ACTIVATIONS = (nn.ReLU, nn.SiLU, nn.GELU, nn.Tanh, nn.Sigmoid, lambda: nn.GELU(approximate="tanh"),
               lambda: Step(lambda x: x * torch.sigmoid(1.702 * x)), lambda: Step(lambda x: F.relu(x).square()))


def drawn_convolutions(draw, classes):
    """Convolutions of a sequence or an image, with BatchNorms, activations and averages; then blocks, or a head."""
    image, extent, width = draw.random() < 0.4, draw.randint(6, 14), draw.randint(1, 3)
    convolution, norm, pool, mean = (nn.Conv2d, nn.BatchNorm2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d) if image else (
        nn.Conv1d, nn.BatchNorm1d, nn.AvgPool1d, nn.AdaptiveAvgPool1d)
    sample, steps, length = torch.randn(2, width, *[extent] * (1 + image)), [], extent
    for _ in range(draw.randint(1, 3)):
        groups = draw.choice([count for count in (1, 2, width) if width % count == 0])
        wide = groups * draw.randint(1, 4)
        kernel = draw.randint(1, min(4, length))
        ends = draw.choice(["none", "same", "zeros"] + ([] if image else ["padded", "cut"]))
        stride = 1 if ends in ("same", "cut") else draw.randint(1, 2)
        kernel -= ends == "same" and kernel % 2 == 0
        padding = {"same": "same", "zeros": kernel // 2, "cut": kernel - 1}.get(ends, 0)
        if ends == "padded":
            steps.append(nn.ConstantPad1d((kernel - 1, 0), 0.0))
        steps.append(convolution(width, wide, kernel, stride, padding, groups=groups, bias=draw.random() < 0.5))
        if ends == "cut" and kernel > 1:
            steps.append(Step(lambda x, cut=kernel - 1: x[:, :, :-cut]))
        width = wide
        if draw.random() < 0.3:
            steps.append(Skip(convolution(width, width, 3, padding=1, groups=draw.choice([1, width])), draw.choice(ACTIVATIONS)()))
        elif draw.random() < 0.5:
            steps.append(norm(width, affine=draw.random() < 0.7))
        if draw.random() < 0.7:
            steps.append(draw.choice(ACTIVATIONS)())
        if draw.random() < 0.3:
            steps += [norm(width), Step(lambda x, factor=draw.choice([0.5, 3, -2.5]): x * factor)]
        length = nn.Sequential(*steps).eval()(sample).shape[2]
        if length > 2 and draw.random() < 0.3:
            steps.append(pool(2, stride=draw.randint(1, 2)))
            length = nn.Sequential(*steps).eval()(sample).shape[2]
    if draw.random() < 0.4:
        layer = nn.TransformerEncoderLayer(width, 1, 8, batch_first=True, norm_first=draw.random() < 0.5)
        steps += [nn.Flatten(2), Step(lambda x: x.transpose(1, 2)), nn.TransformerEncoder(layer, draw.randint(1, 2))]
        steps += [nn.Linear(width, classes)] if draw.random() < 0.5 else [Step(lambda x: x.mean(1)), nn.Linear(width, classes)]
    elif draw.random() < 0.5:
        steps += [mean(1), nn.Flatten(), nn.Linear(width, classes)]
    else:
        steps += [nn.Flatten(), nn.Linear(nn.Sequential(*steps).eval()(sample).flatten(1).shape[1], classes)]
    return with_statistics(nn.Sequential(*steps)), sample


def drawn(draw):
    """A family's name, a module and a batch of inputs, drawn with `draw`, a random.Random."""
    torch.manual_seed(draw.randrange(1 << 30))
    heads = draw.choice([1, 2, 4])
    width = heads * draw.choice([2, 4, 6])
    tokens, depth, classes = draw.randint(1, 9), draw.randint(1, 3), draw.randint(1, 5)
    kind = draw.choice(["encoder", "image", "vision", "llama", "causal", "forecaster", "convolutions", "convolutions", "pairs", "translator"])
    if kind == "encoder":
        module = Encoder(tokens, 3, width, heads, depth, draw.random() < 0.5, draw.choice(["gelu", "relu"]), classes)
        return kind, module, torch.randn(2, tokens, 3)
    if kind == "image":
        module = Image(8, draw.choice([2, 4, 8]), 2, width, depth, heads, classes, draw.choice([None, 0.5]))
        return kind, module, torch.randn(2, 2, 8, 8)
    if kind == "vision":
        return kind, Vision(tokens, width, depth, heads), torch.randn(2, tokens, 6)
    if kind == "llama":
        module = Llama(11, width, depth, heads, draw.choice([h for h in (1, 2, 4) if heads % h == 0]),
                       draw.choice([10000.0, 500000.0]), draw.random() < 0.5)
        return kind, module, torch.randint(0, 11, (2, tokens))
    if kind == "causal":
        return kind, Causal(tokens, 17, 2 * width), torch.randint(0, 17, (2, tokens))
    if kind == "convolutions":
        return kind, *drawn_convolutions(draw, classes)
    if kind == "translator":
        activation = draw.choice(["relu", "gelu", F.silu, torch.tanh, torch.sigmoid, lambda x: F.relu(x).square()])
        module = Translator(draw.random() < 0.5, activation, tokens, draw.randint(1, 7), width, heads, depth)
        return kind, module, module.sample(2)
    if kind == "pairs":
        module = Pairs(tokens, width, heads, depth, classes, draw.choice(["mean", "first", "all"]))
        return kind, module, (torch.randint(0, 19, (2, tokens)), torch.randint(0, 3, (2, tokens)))
    return kind, Forecaster(tokens, 2 * width), torch.randn(2, tokens, 2)


def models():
    """name -> (module, batch of inputs)"""
    torch.manual_seed(1)
    return {
        "encoder": (Encoder(), torch.randn(3, 5, 4)),
        "encoder_before": (Encoder(before=True, activation="relu", depth=1), torch.randn(3, 5, 4)),
        "vision": (Vision(), torch.randn(3, 7, 6)),
        "image": (Image(), torch.randn(3, 3, 8, 8)),
        "sensor": (Sensor(), torch.randn(3, 3, 20)),
        "forecaster": (Forecaster(), torch.randn(3, 6, 2)),
        "llama": (Llama(), torch.randint(0, 20, (3, 6))),
        "llama_tied": (Llama(tied=True, theta=500000.0, kv_heads=4), torch.randint(0, 20, (3, 6))),
        "llama_interleaved": (interleaved_llama(), torch.randint(0, 20, (3, 6))),
        "causal": (Causal(), torch.randint(0, 17, (3, 6))),
        "perceptron": (perceptron(), torch.randn(4, 5)),
        "translator": (Translator(depth=1, before=False, activation="gelu"), Translator().sample()),
        "signal": (with_statistics(Signal()), torch.randn(3, 3, 20)),
        "picture": (with_statistics(Picture()), torch.randn(3, 2, 6, 8)),
        "named": (Named(), torch.randn(3, 6, 4)),
        "unbiased": (nn.Sequential(nn.Linear(5, 8, bias=False), nn.ReLU(), nn.Linear(8, 2, bias=False)), torch.randn(3, 5)),
        "scaled": (nn.Sequential(nn.LayerNorm(5), nn.Tanh()), torch.randn(3, 4, 5)),
        "idioms": (with_statistics(Idioms()), torch.randn(3, 5, 4)),
        "normalized": (with_statistics(NormalizedPicture()), torch.randn(3, 3, 6, 6)),
        "scaled_words": (ScaledWords(), torch.randint(0, 9, (3, 6))),
    }
