"""Spellings of one computation as public code has them, each with what becomes of it, and modules that would be exported wrong if numbers
of one sample were taken for constants."""
import math

import numpy
import torch
import torch.nn.functional as F
from torch import nn

import pytorch2  # noqa: F401: operators of PyTorch 2, in torch.ops.pytorch2

WIDTH, HEADS, TOKENS, BATCH = 12, 3, 5, 4


def rows(features=WIDTH):
    return torch.randn(BATCH, TOKENS, features)


def words(least=0):
    return torch.randint(least, 15, (BATCH, TOKENS))


class Attention(nn.Module):
    """Attention written out; `change(self, x, scores)` is between scores and softmax, `after(weights)` behind it."""

    def __init__(self, change=None, scale=None, weights=None, after=None):
        super().__init__()
        self.after = after or (lambda weights: weights)
        self.change, self.scale = change, (WIDTH // HEADS) ** -0.5 if scale is None else scale
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        for layer in (self.query, self.key) if weights else ():
            nn.init.normal_(layer.weight, std=weights)

    def forward(self, x):
        split = lambda y: y.unflatten(-1, (HEADS, -1)).transpose(1, 2)  # noqa: E731
        scores = split(self.query(x)) @ split(self.key(x)).transpose(-2, -1) * self.scale
        scores = scores if self.change is None else self.change(self, x, scores)
        return self.out((self.after(scores.softmax(-1)) @ split(self.value(x))).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """A transformer block of other names, and a head."""

    def __init__(self, attention, tokenwise=False, embed=None, filters=False):
        super().__init__()
        self.embed, self.attention, self.tokenwise = embed, attention, tokenwise
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.wide, self.narrow, self.head = nn.Linear(WIDTH, 20), nn.Linear(20, WIDTH), nn.Linear(WIDTH, 4)
        if filters:
            self.wide, self.narrow = Over(nn.Conv1d(WIDTH, 20, 1)), Over(nn.Conv1d(20, WIDTH, 1))

    def forward(self, x):
        x = x if self.embed is None else self.embed(x)
        x = x + self.attention(self.before(x))
        x = x + self.narrow(F.gelu(self.wide(self.after(x))))
        return self.head(x if self.tokenwise else x.mean(1))


class Table(nn.Module):
    """Rows of a table: each number makes a token of a vector of its own. `put` adds a trained token, and `take` chooses what is answered."""

    def __init__(self, put, take, before=None, numbers=TOKENS, same=False, after=None, causal=None):
        super().__init__()
        self.put, self.take, self.before, self.after, self.causal = put, take, before, after, causal
        self.numbers, self.token, self.places = Weights(1 if same else numbers, WIDTH), parameter(1, 1, WIDTH), parameter(numbers + 1, WIDTH)
        self.numbers.bias = parameter(numbers, WIDTH)
        self.mix, self.head = encoder(), nn.Linear(WIDTH, 3)

    def forward(self, x):
        x = x if self.before is None else self.before(x)
        x = self.put(x[..., None] * self.numbers.weight + self.numbers.bias, self.token.expand(len(x), -1, -1))
        x = x if self.after is None else self.after(self, x)
        return self.head(self.take(self.mix(x)))


class Step(nn.Module):
    """A function between two Linears; `parts` are modules and parameters that it may use."""

    def __init__(self, step, **parts):
        super().__init__()
        self.inward, self.outward, self.step = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4), step
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.outward(self.step(self, self.inward(x)))


class Image(Step):
    """A function of the channels of a convolution, and their mean."""

    def __init__(self, step, **parts):
        super().__init__(step, inward=nn.Conv2d(3, 8, 3, padding=1), outward=nn.Linear(8, 4), **parts)

    def forward(self, x):
        return self.outward(self.step(self, self.inward(x)).mean((2, 3)))


class Words(nn.Module):
    """Ids that `step` makes rows of."""

    def __init__(self, step, **parts):
        super().__init__()
        self.table, self.head, self.step = nn.Embedding(15, WIDTH), nn.Linear(WIDTH, 4), step
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, ids):
        return self.head(self.step(self, ids))


class Padded(nn.Module):
    """Ids; `hide(self, ids, scores)` is between scores and softmax of `layers` blocks. `take` makes the output's rows of the last one's."""

    def __init__(self, hide, take=lambda own, ids, x: x[:, 0], layers=2, before=None, seen=()):
        super().__init__()
        self.table, self.head, self.hide, self.take, self.before, self.seen = nn.Embedding(15, WIDTH), nn.Linear(WIDTH, 4), hide, take, before, seen
        self.mixes, self.norms = nn.ModuleList(Attention() for _ in range(layers)), nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(layers))

    def forward(self, ids):
        x = self.table(ids) if self.before is None else self.before(self.table(ids).mT).mT
        for index, (mix, norm) in enumerate(zip(self.mixes, self.norms)):
            mix.change = None if index in self.seen else lambda own, x, scores: self.hide(self, ids, scores)
            x = norm(x + mix(x))
        return self.head(self.take(self, ids, x))


class AlbertLayer(nn.Module):
    """A layer of ALBERT."""

    def __init__(self):
        super().__init__()
        self.attention, self.norm, self.full_norm = Attention(), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.ffn, self.ffn_output = nn.Linear(WIDTH, 20), nn.Linear(20, WIDTH)

    def forward(self, x):
        x = self.norm(x + self.attention(x))
        return self.full_norm(self.ffn_output(F.gelu(self.ffn(x), approximate="tanh")) + x)


class Albert(nn.Module):
    """Tables that are narrower than the layers; groups of layers, each applied several times in a row. `hide` as Padded's."""

    def __init__(self, applications=4, groups=1, inner=1, hide=None):
        super().__init__()
        self.words, self.positions, self.types = nn.Embedding(15, 6), nn.Embedding(9, 6), nn.Embedding(2, 6)
        self.norm, self.widen, self.head = nn.LayerNorm(6, eps=1e-12), nn.Linear(6, WIDTH), nn.Linear(WIDTH, 4)
        self.groups, self.applications, self.hide = nn.ModuleList(nn.ModuleList(AlbertLayer() for _ in range(inner)) for _ in range(groups)), applications, hide

    def forward(self, ids):
        x = self.words(ids) + self.types(torch.zeros_like(ids)) + self.positions(torch.arange(ids.shape[1]))
        x = self.widen(self.norm(x))
        for index in range(self.applications):
            for layer in self.groups[index * len(self.groups) // self.applications]:
                layer.attention.change = self.hide and (lambda own, x, scores: self.hide(self, ids, scores))
                x = layer(x)
        return self.head(x[:, 0])


def times(count, *names):
    """Applies parts in a row, several times."""
    def step(own, x):
        for name in names * count:
            x = getattr(own, name)(x)
        return x
    return step


def hide_keys(hidden, padding=0, also=None):
    """masked_fill of the keys that are padding, and of others."""
    def hide(own, ids, scores):
        mask = (ids == padding)[:, None, None, :]
        return scores.masked_fill(mask if also is None else mask | also, hidden)
    return hide


def mean_of_words(own, ids, x):
    mask = (ids != 0)[..., None].expand(x.shape).type_as(x)
    return (x * mask).sum(1) / mask.sum(1).clamp(min=1e-9)


class Translation(nn.Module):
    """nn.Transformer with the padding of source and target, two inputs of ids, which get the same sines."""

    def __init__(self, sines=True):
        super().__init__()
        self.source, self.target, self.head = nn.Embedding(15, WIDTH), nn.Embedding(15, WIDTH), nn.Linear(WIDTH, 4)
        self.core = nn.Transformer(WIDTH, HEADS, 1, 1, 20, batch_first=True)
        angles = torch.arange(20)[:, None] * 10000.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
        self.register_buffer("sines", torch.stack([angles.sin(), angles.cos()], -1).flatten(1) if sines else torch.rand(20, WIDTH))

    def forward(self, source, target):
        mask = torch.full((TOKENS, TOKENS), -math.inf).triu(1)
        pad, sines = source == 0, self.sines[:TOKENS]
        return self.head(self.core(self.source(source) + sines, self.target(target) + sines, tgt_mask=mask, src_key_padding_mask=pad,
                                   memory_key_padding_mask=pad, tgt_key_padding_mask=target == 2))


class Mixing(nn.Module):
    """Attention to `memory` with its residual connection and norm; its projections have a bias or none."""

    def __init__(self, bias, before):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias) for _ in range(4))
        self.norm, self.before = nn.LayerNorm(WIDTH), before

    def forward(self, x, memory=None, mask=None):
        y = self.norm(x) if self.before else x
        memory = y if memory is None else memory
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in (self.q(y), self.k(memory), self.v(memory)))
        weights = (q @ k.mT / 2).masked_fill(~mask[:, None], -1e9).softmax(-1)
        y = x + self.o((weights @ v).transpose(1, 2).flatten(2))
        return y if self.before else self.norm(y)


class WrittenTranslation(nn.Module):
    """An encoder and a decoder that are written out, with names of their own and the padding of both."""

    def __init__(self, bias=False, before=False, layers=2):
        super().__init__()
        self.source, self.target, self.head = nn.Embedding(15, WIDTH), nn.Embedding(15, WIDTH), nn.Linear(WIDTH, 9)
        mixing, network = lambda: Mixing(bias, before), lambda: nn.Sequential(nn.Linear(WIDTH, 20), nn.GELU(), nn.Linear(20, WIDTH))  # noqa: E731
        self.reading = nn.ModuleList(nn.ModuleDict({"mix": mixing(), "net": network(), "last": nn.LayerNorm(WIDTH)}) for _ in range(layers))
        self.writing = nn.ModuleList(nn.ModuleDict({"own": mixing(), "other": mixing(), "net": network(), "last": nn.LayerNorm(WIDTH)}) for _ in range(layers))
        self.before = before

    def networked(self, x, layer):
        return x + layer["net"](layer["last"](x)) if self.before else layer["last"](x + layer["net"](x))

    def forward(self, source, target):
        seen, later = (source != 0)[:, None], torch.ones(1, TOKENS, TOKENS, dtype=torch.bool).tril()
        x, y = self.source(source), self.target(target)
        for layer in self.reading:
            x = self.networked(layer["mix"](x, None, seen), layer)
        for layer in self.writing:
            y = self.networked(layer["other"](layer["own"](y, None, (target != 2)[:, None] & later), x, seen), layer)
        return self.head(y)


class Forecast(nn.Module):
    """Time steps ahead of features that are normalized over time, as RevIN has it."""

    def __init__(self, affine=False, body=None, norm=None, back=None, inside=None):
        super().__init__()
        self.mean, self.deviation = lambda x: x.mean(1, keepdim=True), lambda x: torch.sqrt(torch.var(x, 1, keepdim=True, unbiased=False) + 1e-5)
        self.w, self.b = (nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))) if affine else (None, None)
        self.norm, self.back, self.inside = norm or Forecast.normalized, back or Forecast.given_back, inside or (lambda own, x, n: own.body(n))
        self.body = body or nn.Sequential(Over(nn.Linear(TOKENS, 7), nn.ReLU(), nn.Linear(7, 4)))

    def normalized(self, x):
        n = (x - self.mean(x)) / self.deviation(x)
        return n if self.w is None else n * self.w + self.b

    def given_back(self, y, x):
        if self.w is not None:
            y = (y - self.b) / (self.w + 1e-10)
        return y * self.deviation(x) + self.mean(x)

    def forward(self, x):
        return self.back(self, self.inside(self, x, self.norm(self, x)), x)


class Over(nn.Sequential):
    """Layers of time steps."""

    def forward(self, x):
        return super().forward(x.mT).mT


def biased(x):
    return torch.sqrt(torch.var(x, 1, keepdim=True) + 1e-5)


def detached_in_place(own, x):
    x = x - own.mean(x).detach()
    x /= own.deviation(x).detach()
    return x


class Sums(nn.ModuleList):
    def __init__(self, *layers):
        super().__init__(layers)

    def forward(self, x):
        return self[0](x) + self[1](x)


def beside(own, x):
    n = own.norm(x)
    return own.mix(n) + own.narrow(F.gelu(own.wide(n))) + x


class Beside(nn.Module):
    """GPT-NeoX's block."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.mix, self.wide, self.narrow = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), Attention(), nn.Linear(WIDTH, 20), nn.Linear(20, WIDTH)

    def forward(self, x):
        y = self.mix(self.a(x)) + x
        return self.narrow(F.gelu(self.wide(self.b(x)))) + y


def encoder(**options):
    return nn.TransformerEncoderLayer(WIDTH, HEADS, 20, **{"batch_first": True, **options})


def parameter(*shape):
    return nn.Parameter(0.3 * torch.randn(*shape))


def one_head(own, x, head):
    q, k, v = (x @ own.weights[3 * head + index] for index in range(3))
    return (q @ k.transpose(1, 2) * 4 ** -0.5).softmax(-1) @ v


def packed_attention(own, x):
    q, k, v = own.qkv(x).reshape(len(x), TOKENS, 3, HEADS, -1).permute(2, 0, 3, 1, 4)[0:3]
    qkv = torch.stack([q, k, v])
    weights = (qkv[0] @ qkv[1].transpose(-1, -2) / 2).softmax(-1)
    return x + own.proj((weights @ qkv[2]).transpose(1, 2).reshape(x.shape))


def by_einsum(own, x):
    q, k, v = (torch.einsum("btd,dhk->bthk", x, weight) for weight in (own.q, own.k, own.v))
    weights = torch.einsum("bthk,bshk->bhts", q, k).mul(0.5).softmax(-1)
    return x + own.proj(torch.einsum("bhts,bshk->bthk", weights, v).flatten(2))


def causal(hidden):
    return lambda own, x, scores: scores + torch.full((TOKENS, TOKENS), hidden).triu(1)


def written_softmax(own, x, scores):
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    return (e / e.sum(-1, keepdim=True)).clamp_min(1e-30).log()


def gamma_norm(own, x):
    mean = x.mean(-1, keepdim=True)
    return own.gamma * (x - mean) / torch.sqrt((x - mean).pow(2).mean(-1, keepdim=True) + 1e-6) + own.beta


def swiglu(own, x):
    a, b = own.both(own.norm2(x)).chunk(2, -1)
    return x + own.back(F.silu(b) * a)


def attend_first(own, x):
    return x + own.attend(own.norm1(x))


def excited(own, x, dim=1):
    """Features times a gate of their mean: of tokens, or of an image, whose channels come first."""
    return x * torch.sigmoid(own.up(F.relu(own.down(x.mean(dim, keepdim=True)))))


def spatial_gate(own, x, beside=lambda own, x: 0):
    """One half of the features, times a Linear over the tokens of the other half."""
    kept, gate = F.gelu(own.both(x)).chunk(2, -1)
    return own.back(kept * (F.conv1d(own.norm(gate), own.over, own.beyond) + beside(own, x)))


def spatial_parts(**others):
    return {"both": nn.Linear(WIDTH, 16), "norm": nn.LayerNorm(8), "over": parameter(TOKENS, TOKENS, 1), "beyond": parameter(TOKENS), "back": nn.Linear(8, WIDTH)} | others


def resized(table):
    """Rows of a table, interpolated to a row for each token."""
    return F.interpolate(table.mT[None], size=TOKENS, mode="linear").mT


class Reduced(nn.Module):
    """Attention whose keys and values are packed Linears of `reduce(self, x)`; `change(self, scores)` is before the softmax."""

    def __init__(self, reduce, change=lambda own, scores: scores, **parts):
        super().__init__()
        self.reduce, self.change = reduce, change
        self.query, self.both, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        split = lambda y: y.unflatten(-1, (HEADS, -1)).transpose(1, 2)  # noqa: E731
        q, (k, v) = split(self.query(x)), map(split, self.both(self.reduce(self, x)).chunk(2, -1))
        return self.out((self.change(self, q @ k.mT / 2).softmax(-1) @ v).transpose(1, 2).flatten(2))


class Convolved(Reduced):
    """The same, whose queries are a convolution, too."""

    def __init__(self):
        super().__init__(strided, **strided_parts())
        self.query = Over(nn.Conv1d(WIDTH, WIDTH, 3, padding=1, groups=WIDTH), nn.Conv1d(WIDTH, WIDTH, 1))


def strided(own, x):
    return own.norm(own.conv(x.mT).mT)


def strided_parts():
    return {"conv": nn.Conv1d(WIDTH, WIDTH, 2, 2), "norm": nn.LayerNorm(WIDTH)}


class Narrow(nn.Module):
    """Attention of one head, whose features are fewer than those it takes, and not as many as it answers."""

    def __init__(self):
        super().__init__()
        self.packed, self.out = nn.Linear(WIDTH, 12, bias=False), nn.Linear(4, 8)

    def forward(self, x):
        q, k, v = self.packed(x).chunk(3, -1)
        return self.out((q @ k.mT / 2).softmax(-1) @ v)


class Turned(nn.Module):
    """Attention whose queries and keys go through `norm(self, y, norm of queries or of keys)` and `turn(y)`, [batch, tokens, heads, 4]."""

    def __init__(self, norm=lambda own, y, part: y, turn=lambda y: y, first=False, make=lambda: nn.LayerNorm(4, 1e-6), **parts):
        super().__init__()
        self.normalize, self.turn, self.first, self.a, self.b = norm, turn, first, make(), make()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        for own in (*self.a.parameters(), *self.b.parameters()):
            nn.init.uniform_(own, 0.5, 1.5)
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        split = lambda y: y.unflatten(-1, (HEADS, -1))  # noqa: E731
        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x)).transpose(1, 2)
        q, k = (self.normalize(self, self.turn(y), part) if self.first else self.turn(self.normalize(self, y, part)) for y, part in ((q, self.a), (k, self.b)))
        scores = q.transpose(1, 2) @ k.permute(0, 2, 3, 1) / 2
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Fused(nn.Module):
    """Attention that is one operation, `attend(self, queries, keys, values, what the mask is made of)`."""

    def __init__(self, attend, shared=1, **parts):
        super().__init__()
        self.attend, self.shared = attend, shared
        self.query, self.key, self.value, self.out = nn.Linear(WIDTH, WIDTH), *(nn.Linear(WIDTH, WIDTH // shared) for _ in range(2)), nn.Linear(WIDTH, WIDTH)
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x, given=None):
        split = lambda y: y.unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)  # noqa: E731
        return self.out(self.attend(self, split(self.query(x)), split(self.key(x)), split(self.value(x)), given).transpose(1, 2).flatten(2))


def on_cpu(own, q, k, v, given):
    return torch.ops.pytorch2._scaled_dot_product_flash_attention_for_cpu(q, k, v)[0]


class Cosines(nn.Module):
    """Attention whose scores are cosines; `change(self, scores)` is before the softmax."""

    def __init__(self, change, eps=1e-12, **parts):
        super().__init__()
        self.change, self.eps, self.qkv, self.out = change, eps, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        scores = F.normalize(q, dim=-1, eps=self.eps) @ F.normalize(k, dim=-1, eps=self.eps).mT
        return self.out((self.change(self, scores).softmax(-1) @ v).transpose(1, 2).flatten(2))


def of_pairs(tokens, entry):
    """The entry of each query and key, [tokens, tokens]."""
    return torch.tensor([[entry(query, key) for key in range(tokens)] for query in range(tokens)])


def swin(i, j, cols=3, rows=2):
    return (i // cols - j // cols + rows - 1) * (2 * cols - 1) + i % cols - j % cols + cols - 1


def beit(i, j):
    return swin(i - 1, j - 1) if i and j else 17 if i == j else 16 if i else 15


def levit(i, j):
    """Distances on a grid of 2 × 3, in another order than attune's."""
    return [0, 1, 2, 5, 4, 3][3 * abs(i // 3 - j // 3) + abs(i % 3 - j % 3)]


def t5(i, j, two_sided=True, buckets=8, max_distance=16):
    side = buckets // 2 if two_sided else buckets
    exact, away = side // 2, abs(j - i) if two_sided else max(i - j, 0)
    far = exact + int(math.log(max(away, 1) / exact) / math.log(max_distance / exact) * (side - exact) + 1e-9)
    return (side if two_sided and j > i else 0) + (away if away < exact else min(far, side - 1))


def with_biases(tokens, entry, size, turned=True, change=lambda own, s, bias: s + bias, start=parameter, **parts):
    """Attention with a table [size, heads], or [heads, size], and its input."""
    index = of_pairs(tokens, entry)
    block = Block(Attention(lambda own, x, s: change(own, s, own.table[index].permute(2, 0, 1) if turned else own.table[:, index])), True)
    return with_parts(block, table=start(*((size, HEADS) if turned else (HEADS, size))), **parts), torch.randn(BATCH, tokens, WIDTH)


class OneTable(nn.Module):
    """Two blocks with one table of biases, as T5."""

    def __init__(self):
        super().__init__()
        self.table, index = nn.Embedding(8, HEADS), of_pairs(TOKENS, t5)
        self.a, self.b = (Attention(lambda own, x, s: s + self.table(index).permute(2, 0, 1)) for _ in range(2))

    def forward(self, x):
        x = x + self.a(x)
        return x + self.b(x)


def with_temperature(change, values=0.3, shape=(HEADS, 1, 1), scale=1.0):
    """A block whose attention has a temperature t; `change(t, scores)`."""
    return with_parts(Block(Attention(lambda own, x, scores: change(own.temperature, scores), scale)), temperature=nn.Parameter(values + 0.5 * torch.rand(shape)))


class OfEach(nn.Module):
    """A Linear for each variable: of its number in a row, or of all its tokens. Their outputs are stacked along `dim`."""

    def __init__(self, part, size=1, dim=1, head=None, shared=False, token=None):
        super().__init__()
        own = nn.Linear(size, WIDTH)
        self.own = nn.ModuleList(own if shared else nn.Linear(size, WIDTH) for _ in range(TOKENS))
        self.part, self.dim, self.token, self.head = part, dim, token, head or nn.Sequential(encoder(), nn.Linear(WIDTH, 3))

    def forward(self, x):
        found = [own(self.part(x, at)) for at, own in enumerate(self.own)]
        return self.head(torch.stack(found if self.token is None else [self.token.expand_as(found[0]), *found], self.dim))


def projections():
    return {name: nn.Linear(WIDTH, WIDTH) for name in "qkv"}


def attend(own, x, split):
    """Attention whose heads are not put side by side."""
    q, k, v = split(own.q(x)), split(own.k(x)), split(own.v(x))
    return (q @ k.transpose(-1, -2) / 2).softmax(-1) @ v


class ShiftedPatches(nn.Module):
    """Patches of an image, and of the image one pixel beside itself, with a norm and a Linear."""

    def __init__(self):
        super().__init__()
        self.norm, self.mix, self.head = nn.LayerNorm(24), nn.Linear(24, WIDTH), nn.Linear(WIDTH, 3)

    def forward(self, x):
        x = torch.cat([x, F.pad(x, (1, -1, 0, 0)), F.pad(x, (0, 0, -1, 1))], 1).unfold(2, 2, 2).unfold(3, 2, 2)
        return self.head(torch.relu(self.mix(self.norm(x.permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)))).mean(1))


def without_last(own, x):
    n = (x - x[:, -1:]) / own.deviation(x)
    return n if own.w is None else n * own.w + own.b


def with_last(own, y, x):
    y = y if own.w is None else (y - own.b) / (own.w + 1e-10)
    return y * own.deviation(x) + x[:, -1:]


def of_heads(own, y, part):
    return part(y)


def root_mean_square(own, y, part):
    return part.weight * y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)


def by_complex(angles):
    def turn(y):
        turns = torch.polar(torch.ones_like(angles), angles)[:, None].to(torch.complex64 if y.dtype == torch.float32 else torch.complex128)
        return torch.view_as_real(torch.view_as_complex(y.unflatten(-1, (-1, 2))) * turns).flatten(3)
    return turn


def by_halves(y, turn=1):
    angles = torch.arange(TOKENS)[:, None, None] * 1e4 ** (-torch.arange(2).double() / 2)
    cos, sin = (torch.cat([f(angles)] * 2, -1).type_as(y) for f in (torch.cos, torch.sin))
    return y * cos + torch.cat([-y[..., 2:], y[..., :2]], -1) * sin * turn


class FlatList(nn.Module):
    """Two blocks as a list of attention and networks."""

    def __init__(self):
        super().__init__()
        network = lambda: nn.Sequential(nn.Linear(WIDTH, 20), nn.GELU(), nn.Linear(20, WIDTH))  # noqa: E731
        self.parts = nn.ModuleList(nn.ModuleList([nn.LayerNorm(WIDTH), part]) for part in (Attention(), network(), Attention(), network()))
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x):
        for norm, part in self.parts:
            x = x + part(norm(x))
        return self.head(x[:, 0])


def one_key(own, x, scores, token_at=2, heads=HEADS):
    """Attention whose heads share keys and values, by einsum."""
    q = own.q(x).unflatten(-1, (heads, -1))
    q = q if token_at == 1 else q.transpose(1, 2)
    weights = (torch.einsum(scores, q, own.k(x)) * (WIDTH // heads) ** -0.5).softmax(-1)
    y = torch.einsum(scores.replace("d, b j d -> b", "j, b j d -> b").rpartition(" ")[0] + " d", weights, own.v(x))
    return (y if token_at == 1 else y.transpose(1, 2)).flatten(2)


def shifted_queries(bias):
    """Attention whose queries have constants added to them, beside their Linear's bias or without one."""
    attention = Attention()
    attention.query = nn.Sequential(nn.Linear(WIDTH, WIDTH, bias), Function(lambda y: y + torch.linspace(0.1, 1, WIDTH)))
    return Block(attention)


class Attending(Attention):
    """Attention with changed queries, rows that its values or its keys and values are of, or weights."""

    def __init__(self, queries=None, values=None, others=None, after=None):
        super().__init__()
        self.queries, self.values, self.others, self.after = queries, values, others, after

    def forward(self, x):
        split = lambda y: y.view(*y.shape[:2], HEADS, -1).transpose(1, 2)  # noqa: E731
        memory = self.others(x) if self.others else x
        q, k, v = self.query(x), self.key(memory), self.value(self.values(x) if self.values else memory)
        weights = (split(self.queries(self, q) if self.queries else q) @ split(k).transpose(2, 3) / 2).softmax(-1)
        return self.out(((self.after(self, weights) if self.after else weights) @ split(v)).transpose(1, 2).flatten(2))


def written_softmax(scores):
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


def of_two(own, x, shared):
    """Four heads with two of keys and values."""
    q, k, v = (y.view(*y.shape[:2], -1, 4).transpose(1, 2) for y in (own.q(x), own.k(x), own.v(x)))
    return ((q @ shared(k).mT / 2).softmax(-1) @ shared(v)).transpose(1, 2).flatten(2)


def masked_by_index(own, x, scores):
    scores = scores.clone()
    scores[..., torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)] = -1e9
    return scores


def exported():
    """name -> (module, sample)"""
    torch.manual_seed(11)
    dim = {"gamma": nn.Parameter(torch.rand(WIDTH) + 0.5), "beta": parameter(WIDTH)}
    sine = torch.arange(TOKENS)[:, None] * 10000.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    norm = nn.BatchNorm1d(WIDTH)
    norm.running_mean.normal_(), norm.running_var.uniform_(0.5, 2)
    pad = lambda ids: (ids == 0)[:, None, :].expand(-1, TOKENS, -1).repeat_interleave(HEADS, 0)  # noqa: E731
    tied = Words(lambda own, ids: own.mix(own.table(ids)), mix=nn.Linear(WIDTH, WIDTH))
    tied.head = nn.Linear(WIDTH, 15, bias=False)
    tied.head.weight = tied.table.weight
    biased = Words(lambda own, ids: own.mix(own.table(ids)), mix=nn.Linear(WIDTH, WIDTH))
    biased.head = nn.Linear(WIDTH, 15)
    biased.head.weight = biased.table.weight
    angles = torch.arange(TOKENS)[:, None] * 1e4 ** (-torch.arange(2).double() / 2)
    return {
        "a block": (Block(Attention()), rows()),
        "a scale of its own": (Block(Attention(scale=1.0)), rows()),
        "a scale of its own that small weights hide": (Block(Attention(scale=0.1, weights=1e-3)), rows()),
        "a scale in place": (Block(Attention(lambda own, x, scores: scores.mul_(0.3))), rows()),
        "a causal mask of -1e9": (Block(Attention(causal(-1e9)), True), rows()),
        "a causal mask of -inf": (Block(Attention(causal(-math.inf)), True), rows()),
        "attention's weights times 1": (Block(Attending(after=lambda own, w: w * 1.0)), rows()),
        "a softmax that is written out": (Step(lambda own, x: x + written_softmax(x @ own.q @ (x @ own.k).mT * 0.3) @ own.v(x), q=parameter(WIDTH, WIDTH), k=parameter(WIDTH, WIDTH),
                                               v=nn.Linear(WIDTH, WIDTH)), rows()),
        "a root mean square norm with a bias": (Step(lambda own, x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * own.gamma + own.beta, gamma=parameter(WIDTH), beta=parameter(WIDTH)),
                                                rows()),
        "a root mean square norm with two factors": (Step(lambda own, x: own.b * (own.a * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))), a=parameter(WIDTH), b=parameter(WIDTH)), rows()),
        "a LayerNorm with a bias alone": (Step(lambda own, x: F.layer_norm(x, (WIDTH,)) + own.beta, beta=parameter(WIDTH)), rows()),
        "a LayerNorm, and constants that are added": (Step(lambda own, x: (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt() * own.gamma +
                                                           torch.linspace(1, 2, WIDTH), gamma=parameter(WIDTH)), rows()),
        "positions and a bias": (Step(lambda own, x: x + (own.table + own.beta), table=parameter(TOKENS, WIDTH), beta=parameter(WIDTH)), rows()),
        "positions and a row of a table": (Step(lambda own, x: x + (own.table + own.types.weight[0]), table=parameter(TOKENS, WIDTH), types=nn.Embedding(2, WIDTH)), rows()),
        "sines of one token": (Step(lambda own, x: x[:, :1] + torch.tensor([0.0, 1.0] * (WIDTH // 2))), rows()),
        "a matrix in front": (Step(lambda own, x: torch.relu(own.matrix @ x), matrix=parameter(TOKENS, TOKENS)), rows()),
        "a matrix of every sample, and a bias": (Step(lambda own, x: torch.relu(torch.baddbmm(own.beta, x, own.matrix.expand(len(x), -1, -1))), matrix=parameter(WIDTH, WIDTH), beta=parameter(WIDTH)),
                                                 rows()),
        "a norm by torch.var_mean": (Step(lambda own, x: (lambda v, m: (x - m) / (v + 1e-5).sqrt())(*torch.var_mean(x, -1, unbiased=False, keepdim=True))), rows()),
        "products with factors of their own": (Step(lambda own, x: torch.addmm(own.b, torch.baddbmm(x, x, own.m.expand(len(x), -1, -1), alpha=2)[:, 0], own.n, alpha=3), b=parameter(WIDTH),
                                                    m=parameter(WIDTH, WIDTH), n=parameter(WIDTH, WIDTH)), rows()),
        "patches by nn.Unfold": (nn.Sequential(nn.Unfold((2, 2), stride=2), Function(lambda x: x.mT), nn.Linear(8, 4)), torch.randn(BATCH, 2, 4, 6)),
        "an input that is reflected at its edges": (nn.Sequential(nn.ReflectionPad1d(1), nn.Conv1d(WIDTH, 4, 3)), torch.randn(BATCH, WIDTH, 9)),
        "tokens whose numbers torch.where answers": (Step(lambda own, x: x[:, torch.where(torch.arange(TOKENS) > 0)[0]]), rows()),
        "heads that share keys, repeated": (Step(lambda own, x: x + own.o(of_two(own, x, lambda y: y.repeat_interleave(2, 1))), q=nn.Linear(WIDTH, 16), k=nn.Linear(WIDTH, 8),
                                                 v=nn.Linear(WIDTH, 8), o=nn.Linear(16, WIDTH)), rows()),
        "a causal mask by an index": (Block(Attention(masked_by_index), True), rows()),
        "a mean and a deviation that the output gets back": (Standardized(trained=False), rows()),
        "a mask of a window": (Block(Attention(lambda own, x, scores: scores.masked_fill(
            (torch.arange(TOKENS) - torch.arange(TOKENS)[:, None]).abs() > 1, -1e9)), True), rows()),
        "scores with a constant that softmax takes out": (Block(Attention(lambda own, x, scores: scores + 3)), rows()),
        "a temperature, and no token that sees itself": (with_temperature(
            lambda t, s: (s * t.exp()).masked_fill(torch.eye(TOKENS, dtype=torch.bool), -torch.finfo(s.dtype).max), -0.7, ()), rows()),
        "biases of offsets on a grid": with_biases(6, swin, 15),
        "biases of offsets on a grid with a class token": with_biases(7, beit, 18),
        "biases of distances on a grid, in another order": with_biases(6, levit, 6, False),
        "biases over a number": with_biases(6, levit, 6, change=lambda own, s, bias: s + bias / 0.5),
        "biases of clipped distances": with_biases(7, lambda i, j: min(max(j - i, -3), 3) + 3, 7),
        "biases of some distances of a table": with_biases(7, lambda i, j: i - j + 9, 21, False),
        "biases of distances in both directions": with_biases(7, lambda i, j: abs(i - j), 7, False),
        "biases of T5's buckets": with_biases(18, t5, 8),
        "biases of T5's buckets, of a causal model": with_biases(18, lambda i, j: t5(i, j, False), 8, change=lambda own, s, bias: s + bias + torch.full((18, 18), -1e9).triu(1)),
        "biases of zero, and a temperature": with_biases(6, levit, 6, change=lambda own, s, bias: s * own.temperature + bias, start=lambda *shape: nn.Parameter(torch.zeros(shape)),
                                                         temperature=nn.Parameter(0.5 + torch.rand(HEADS, 1, 1))),
        "a temperature of each head": (with_temperature(lambda t, s: s * t, scale=0.5), rows()),
        "a temperature that divides": (with_temperature(lambda t, s: (s / t), 1.0, 1), rows()),
        "a temperature at its start": (with_parts(Block(Attention(lambda own, x, s: s * own.temperature)), temperature=nn.Parameter(torch.ones(1))), rows()),
        "cosines with a clamped scale": (Block(Cosines(lambda own, s: s * torch.clamp(own.scale, max=math.log(100)).exp(), scale=nn.Parameter(2 + torch.rand(HEADS, 1, 1)))), rows()),
        "cosines with a trained scale": (Block(Cosines(lambda own, s: s * own.scale * 2, scale=nn.Parameter(torch.tensor(5.0)))), rows()),
        "patches of an image beside itself": (ShiftedPatches(), torch.randn(BATCH, 2, 6, 4)),
        "packed projections by index": (Step(packed_attention, qkv=nn.Linear(WIDTH, 3 * WIDTH), proj=nn.Linear(WIDTH, WIDTH)), rows()),
        "projections that are tensors": (Step(by_einsum, q=parameter(WIDTH, HEADS, 4), k=parameter(WIDTH, HEADS, 4), v=parameter(WIDTH, HEADS, 4),
                                              proj=nn.Linear(WIDTH, WIDTH)), rows()),
        "one module a head": (Step(lambda own, x: x + own.proj(torch.cat([one_head(own, x, head) for head in range(HEADS)], -1)),
                                   weights=nn.ParameterList([parameter(WIDTH, 4) for _ in range(3 * HEADS)]), proj=nn.Linear(WIDTH, WIDTH)), rows()),
        "no output projection": (Step(lambda own, x: x + (own.q(x) @ own.k(x).transpose(1, 2)).softmax(-1) @ own.v(x), q=nn.Linear(WIDTH, WIDTH),
                                      k=nn.Linear(WIDTH, WIDTH), v=nn.Linear(WIDTH, WIDTH)), rows()),
        "attention's weights that nobody reads": (Step(lambda own, x: x + own.mix(x, x, x, average_attn_weights=False)[0],
                                                       mix=nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)), rows()),
        "tokens first": (Step(lambda own, x: own.layer(x.transpose(0, 1)).mean(0), layer=encoder(batch_first=False)), rows()),
        "channels first": (Step(lambda own, x: torch.relu(own.filter(x.mT)).mT, filter=nn.Conv1d(WIDTH, WIDTH, 3, padding=1)), rows()),
        "an input with its places changed": (nn.Sequential(nn.Conv1d(1, 1, 1), nn.Flatten(1), nn.Linear(7, 3)), torch.randn(BATCH, 1, 7)),
        "features that are time steps": (Features(), torch.randn(BATCH, WIDTH, TOKENS)),
        "all tokens as one row": (Rows(lambda x: x.flatten(1)), rows()),
        "all tokens as one row, channels first": (Rows(lambda x: x.transpose(1, 2).reshape(len(x), -1)), rows()),
        "positions of a parameter's slice": (Step(lambda own, x: x + own.positions[:TOKENS], positions=parameter(9, WIDTH)), rows()),
        "positions from an offset": (Step(lambda own, x: x + own.positions(torch.arange(TOKENS) + 2), positions=nn.Embedding(9, WIDTH)), rows()),
        "positions that are no tensor of the module": (Step(lambda own, x: x + own.positions[0], positions=[torch.randn(TOKENS, WIDTH)]), rows()),
        "sinusoidal positions": (Step(lambda own, x: x + torch.stack([sine.sin(), sine.cos()], -1).flatten(1)), rows()),
        "positions of tokens that come first": (Step(lambda own, x: (x.transpose(0, 1) + own.positions).transpose(0, 1), positions=parameter(TOKENS, 1, WIDTH)), rows()),
        "factors of channels": (nn.Sequential(nn.Conv2d(2, 4, 2), Scaled(4), nn.ReLU(), nn.Flatten(), nn.Linear(48, 3)), torch.randn(BATCH, 2, 4, 5)),
        "positions of zero": (Step(lambda own, x: x + own.positions, positions=nn.Parameter(torch.zeros(1, TOKENS, WIDTH))), rows()),
        "a class token behind a Linear": (Step(lambda own, x: own.layer(torch.cat([own.token.expand(len(x), 1, -1), x], 1))[:, 0], token=parameter(WIDTH), layer=encoder()), rows()),
        "gamma and beta": (Step(gamma_norm, **dim), rows()),
        "a norm whose weights are around 0": (Step(lambda own, x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * (1 + own.gamma), gamma=parameter(WIDTH)), rows()),
        "a LayerNorm whose weights are around 0": (Step(lambda own, x: F.layer_norm(x, (WIDTH,)) * (own.gamma + 1.0) + own.beta, gamma=parameter(WIDTH), beta=parameter(WIDTH)), rows()),
        "a LayerNorm whose weights are around 0, in one operation": (Step(lambda own, x: F.layer_norm(x, (WIDTH,), 1 + own.gamma, own.beta - 2), gamma=parameter(WIDTH), beta=parameter(WIDTH)), rows()),
        "norms of heads whose weights are around 0": (Block(Turned(lambda own, y, part: F.layer_norm(y, (4,), part.weight - 0.5, part.bias, 1e-6))), rows()),
        "factors and biases in one operation": (Step(lambda own, x: torch.addcmul(own.beta, own.gamma, torch.relu(x)), **dim), rows()),
        "a norm by F.normalize": (Step(lambda own, x: F.normalize(x, dim=-1) * WIDTH ** 0.5 * own.gamma, gamma=dim["gamma"]), rows()),
        "a norm of the input by F.normalize": (nn.Sequential(Function(lambda x: F.normalize(x, dim=-1)), nn.Linear(WIDTH, 4)), rows()),
        "a norm of rows that are not shorter than a number": (Step(lambda own, x: x / (x.norm(dim=-1, keepdim=True) * WIDTH ** -0.5).clamp(min=1e-8) * own.gamma, gamma=dim["gamma"]), rows()),
        "positions times a number": (Step(lambda own, x: x + own.places(torch.arange(TOKENS)) * 0.25, places=nn.Embedding(9, WIDTH)), rows()),
        "a sum of positions of all samples": (Step(lambda own, x: x + (own.a.repeat(len(x), 1, 1) * 0.5 + own.b[:TOKENS]), a=parameter(1, TOKENS, WIDTH), b=parameter(9, WIDTH)), rows()),
        "a BatchNorm of what a residual connection takes, too": (Step(lambda own, x: x + torch.relu(own.norm(x.mT).mT), norm=norm), rows()),
        "an InstanceNorm": (Step(lambda own, x: own.norm(x.mT).mT, norm=nn.InstanceNorm1d(WIDTH, affine=True)), rows()),
        "a GLU that no Linear follows": (Step(lambda own, x: x + F.glu(own.wide(x)), wide=nn.Linear(WIDTH, 2 * WIDTH)), rows()),
        "a GLU of a convolution of one token": (Step(lambda own, x: own.deep(F.glu(own.wide(x.mT), 1)).mT, wide=nn.Conv1d(WIDTH, 2 * WIDTH, 1), deep=nn.Conv1d(WIDTH, WIDTH, 3, padding=1, groups=WIDTH)), rows()),
        "a network of convolutions of one token": (Block(Attention(), filters=True), rows()),
        "blocks in a flat list": (FlatList(), rows()),
        "one block twice": (Step(times(2, "layer"), layer=encoder()), rows()),
        "one block in a loop": (Step(times(4, "layer"), layer=encoder(norm_first=True)), rows()),
        "two blocks in a loop": (Step(times(3, "a", "b"), a=encoder(), b=encoder()), rows()),
        "blocks of two kinds in a loop": (Step(times(2, "a", "b"), a=encoder(), b=encoder(norm_first=True)), rows()),
        "one block twice in a loop, then another one": (Step(times(3, "a", "a", "b"), a=encoder(), b=encoder()), rows()),
        "a list of blocks in a loop": (Step(times(3, "layers"), layers=nn.TransformerEncoder(encoder(), 2)), rows()),
        "a network in a loop": (Step(lambda own, x: times(3, "block")(own, x).mean(1), block=Added(lambda own, x: own.b(torch.tanh(own.a(own.norm(x)))), norm=nn.LayerNorm(WIDTH),
                                                                                                        a=nn.Linear(WIDTH, 20), b=nn.Linear(20, WIDTH))), rows()),
        "one Linear 26 times": (Step(times(26, "mix"), mix=nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.Tanh())), rows()),
        "one convolution and its BatchNorm in a loop": (Step(lambda own, x: times(3, "layer")(own, x.mT).mT, layer=nn.Sequential(
            nn.Conv1d(WIDTH, WIDTH, 3, padding=1), nn.BatchNorm1d(WIDTH), nn.ReLU())), rows()),
        "a norm whose weights are around 0, in a loop": (Step(times(3, "layer"), layer=Step(
            lambda own, x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * (1 + own.gamma), gamma=parameter(WIDTH), outward=nn.Linear(WIDTH, WIDTH))), rows()),
        "half of a parameter in a loop": (Step(times(3, "layer"), layer=Added(lambda own, x: own.back(F.relu(F.linear(x, own.matrix[:20]))), matrix=parameter(30, WIDTH), back=nn.Linear(20, WIDTH))),
                                          rows()),
        "positions that are added in a loop": (Step(times(3, "layer"), layer=Step(lambda own, x: own.mix(x + own.table), table=parameter(TOKENS, WIDTH), mix=encoder(),
                                                                                       outward=nn.Linear(WIDTH, WIDTH))), rows()),
        "one block in a loop for each variable": (Variables(times(3, "block"), block=encoder()), series()),
        "a forecast of one block in a loop": (Forecast(body=nn.Sequential(*[encoder()] * 3)), rows()),
        "ALBERT": (Albert(), words()),
        "ALBERT, of two groups of two layers": (Albert(8, 2, 2), words()),
        "ALBERT, with a padding mask": (Albert(hide=hide_keys(-1e9)), words(1)),
        "one head of keys and values": (Step(lambda own, x: x + own.o(one_key(own, x, "b h i d, b j d -> b h i j")), q=nn.Linear(WIDTH, WIDTH), k=nn.Linear(WIDTH, WIDTH // HEADS),
                                             v=nn.Linear(WIDTH, WIDTH // HEADS), o=nn.Linear(WIDTH, WIDTH)), rows()),
        "one head of keys and values, heads last": (Step(lambda own, x: x + own.o(one_key(own, x, "b i h d, b j d -> b i h j", 1)), q=nn.Linear(WIDTH, WIDTH), k=nn.Linear(WIDTH, WIDTH // HEADS),
                                                         v=nn.Linear(WIDTH, WIDTH // HEADS), o=nn.Linear(WIDTH, WIDTH)), rows()),
        "norms of two epsilons": (Step(lambda own, x: own.two(own.one(x)), one=encoder(layer_norm_eps=1e-3), two=encoder()), rows()),
        "a matrix that is a parameter": (Step(lambda own, x: torch.relu(x @ own.matrix + own.bias), matrix=parameter(WIDTH, WIDTH), bias=parameter(WIDTH)), rows()),
        "a transposed matrix": (Step(lambda own, x: torch.relu(torch.matmul(x, own.matrix.t())), matrix=parameter(WIDTH, WIDTH)), rows()),
        "half of a parameter": (Step(lambda own, x: x + own.back(F.relu(F.linear(x, own.matrix[:20]))), matrix=parameter(30, WIDTH), back=nn.Linear(20, WIDTH)), rows()),
        "a packed gate": (Step(lambda own, x: swiglu(own, attend_first(own, x)), norm1=nn.LayerNorm(WIDTH), norm2=nn.LayerNorm(WIDTH), attend=Attention(),
                               both=nn.Linear(WIDTH, 40), back=nn.Linear(20, WIDTH)), rows()),
        "a gate outside of a block": (Step(swiglu, norm2=nn.LayerNorm(WIDTH), both=nn.Linear(WIDTH, 40), back=nn.Linear(20, WIDTH)), rows()),
        "nn.GLU": (Step(lambda own, x: own.back(F.glu(own.both(x))), both=nn.Linear(WIDTH, 40), back=nn.Linear(20, WIDTH)), rows()),
        "attention to a strided convolution": (Block(Reduced(strided, **strided_parts())), rows()),
        "positions that are resized to the size that they have": (Step(lambda own, x: x + resized(own.table), table=parameter(TOKENS, WIDTH)), rows()),
        "queries and keys of two convolutions": (Block(Convolved()), rows()),
        "attention of the input to its maximum": (nn.Sequential(Reduced(lambda own, x: x.amax(1, keepdim=True)), nn.Linear(WIDTH, 4)), rows()),
        "attention to a ReLU": (Step(lambda own, x: own.mix(x), mix=Attending(others=torch.relu)), rows()),
        "attention to averages of pairs": (Block(Reduced(lambda own, x: F.avg_pool1d(x.mT, 2, 2).mT)), rows()),
        "attention to a Linear over tokens": (nn.Sequential(nn.Linear(WIDTH, WIDTH), Reduced(lambda own, x: own.over(x.mT).mT, over=nn.Linear(TOKENS, 3)), nn.Linear(WIDTH, 4)), rows()),
        "attention to the mean of all tokens": (Block(Reduced(lambda own, x: x.mean(1, keepdim=True))), rows()),
        "squeeze and excitation": (Step(excited, down=nn.Linear(WIDTH, 3), up=nn.Linear(3, WIDTH)), rows()),
        "squeeze and excitation of an image": (Image(lambda own, x: excited(own, x, (2, 3)), down=nn.Conv2d(8, 3, 1), up=nn.Conv2d(3, 8, 1)), torch.randn(BATCH, 3, 4, 5)),
        "a gate of neighboring channels": (Image(lambda own, x: x * own.near(x.mean((2, 3))[:, None]).mT[..., None].sigmoid(), near=nn.Conv1d(1, 1, 3, padding=1, bias=False)),
                                           torch.randn(BATCH, 3, 4, 5)),
        "a spatial gating unit": (Step(lambda own, x: x + spatial_gate(own, x), **spatial_parts()), rows()),
        "a spatial gating unit beside attention": (Step(lambda own, x: x + spatial_gate(own, x, lambda own, x: own.attend(x)), **spatial_parts(
            attend=Narrow())), rows()),
        "attention times a gate": (Step(lambda own, x: own.attend(x) * torch.sigmoid(own.gate(x)), attend=Attention(), gate=nn.Linear(WIDTH, WIDTH)), rows()),
        "one plus a gate, times its input": (Step(lambda own, x: x * (1 + own.gate(x).tanh()), gate=nn.Linear(WIDTH, WIDTH)), rows()),
        "a gate of all tokens, times a layer": (Step(lambda own, x: own.gate(x.amax(1, keepdim=True)).sigmoid() * own.mix(x), gate=nn.Linear(WIDTH, WIDTH), mix=nn.Linear(WIDTH, WIDTH)), rows()),
        "a gate of two Linears": (Step(lambda own, x: own.back(torch.tanh(own.a(x)) * own.b(x)), a=nn.Linear(WIDTH, 20), b=nn.Linear(WIDTH, 20), back=nn.Linear(20, WIDTH)), rows()),
        "sequence pooling": (Step(lambda own, x: (own.pool(x).softmax(1).mT @ x).squeeze(1), pool=nn.Linear(WIDTH, 1)), rows()),
        "an adaptive maximum": (Step(lambda own, x: F.adaptive_max_pool1d(x.mT, 1).squeeze(-1)), rows()),
        "a maximum of windows": (Step(lambda own, x: F.max_pool1d(own.filter(x.mT), 3, 2, 1).mT, filter=nn.Conv1d(WIDTH, WIDTH, 1)), rows()),
        "a maximum of squares": (nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Flatten(), nn.Linear(36, 3)), torch.randn(BATCH, 2, 7, 7)),
        "the last token": (Step(lambda own, x: torch.relu(x)[:, -1]), rows()),
        "the second token": (Step(lambda own, x: torch.relu(x)[:, 1]), rows()),
        "heads of two tokens": (Step(lambda own, x: (lambda y: (own.a(y[:, 0]) + own.b(y[:, 1])) / 2)(own.layer(x)),
                                     layer=encoder(), a=nn.Linear(WIDTH, WIDTH), b=nn.Linear(WIDTH, WIDTH)), rows()),
        "tokens without the first": (Step(lambda own, x: own.layer(x)[:, 1:], layer=encoder()), rows()),
        "registers": (Step(lambda own, x: own.layer(torch.cat([own.a.expand(len(x), 1, -1), own.b.expand(len(x), -1, -1), x], 1))[:, 4:].mean(1), a=parameter(1, 1, WIDTH),
                           b=parameter(1, 3, WIDTH), layer=encoder()), rows()),
        "norm by deviation": (Step(lambda own, x: own.a * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + own.b, a=parameter(WIDTH), b=parameter(WIDTH)), rows()),
        "norm by biased deviation": (Step(lambda own, x: own.a * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, unbiased=False) + 1e-5) + own.b,
                                          a=parameter(WIDTH), b=parameter(WIDTH)), rows()),
        "a Linear over tokens": (Step(lambda own, x: x + own.mix(own.norm(x).mT).mT, norm=nn.LayerNorm(WIDTH), mix=nn.Linear(TOKENS, TOKENS)), rows()),
        "a Linear over tokens of the input": (nn.Sequential(Added(lambda own, x: own.mix(x.mT).mT, mix=nn.Linear(TOKENS, TOKENS)), nn.Linear(WIDTH, 3)), rows()),
        "convolutions over tokens": (Step(lambda own, x: own.back(F.gelu(own.mix(x))) + x, mix=nn.Conv1d(TOKENS, 7, 1), back=nn.Conv1d(7, TOKENS, 1)), rows()),
        "a Linear of time steps": (nn.Sequential(nn.Conv1d(WIDTH, 8, 3, padding=1), nn.Linear(TOKENS, 2)), torch.randn(BATCH, WIDTH, TOKENS)),
        "a LayerNorm of time steps": (nn.Sequential(nn.Conv1d(WIDTH, 8, 3, padding=1), nn.LayerNorm(TOKENS)), torch.randn(BATCH, WIDTH, TOKENS)),
        "as many tokens as features that change places": (Step(lambda own, x: x + own.mix(x.mT).mT, mix=nn.Linear(WIDTH, WIDTH)), torch.randn(BATCH, WIDTH, WIDTH)),
        "a bias behind an activation of one token": (Step(lambda own, x: torch.tanh(x[:, 0] * own.alpha) * own.gamma + own.beta, alpha=parameter(1), gamma=parameter(WIDTH), beta=parameter(WIDTH)), rows()),
        "positions of one token": (Step(lambda own, x: x[:, :1] + own.places, places=parameter(1, 1, WIDTH)), rows()),
        "a bias behind an activation": (Step(lambda own, x: torch.relu(x) + own.beta, beta=parameter(WIDTH)), rows()),
        "a norm without a norm": (Step(lambda own, x: torch.relu(own.mix(x * own.gamma + own.beta)), gamma=parameter(WIDTH), beta=parameter(WIDTH), mix=nn.Linear(WIDTH, WIDTH)), rows()),
        "a forecast of normalized features": (Forecast(), rows()),
        "a forecast by detached statistics": (Forecast(norm=detached_in_place), rows()),
        "a forecast with a factor and a bias": (Forecast(True), rows()),
        "a forecast of tokens": (Forecast(body=nn.Sequential(nn.Linear(WIDTH, 8), nn.ReLU(), nn.Linear(8, WIDTH))), rows()),
        "a forecast of features without their last step": (Forecast(norm=without_last, back=with_last), rows()),
        "a forecast of features without their last step, with a factor and a bias": (Forecast(True, norm=without_last, back=with_last), rows()),
        "a forecast of blocks": (Forecast(body=nn.Sequential(*[encoder() for _ in range(2)])), rows()),
        "an input that is normalized over time": (Forecast(back=lambda own, y, x: y), rows()),
        "an input that is normalized over time, with a factor and a bias": (Forecast(True, back=lambda own, y, x: y), rows()),
        "a class of a normalized input": (nn.Sequential(Forecast(body=encoder(), back=lambda own, y, x: y.mean(1)), nn.Linear(WIDTH, 3)), rows()),
        "a forecast, then a Linear": (nn.Sequential(Forecast(), nn.Linear(WIDTH, 3)), rows()),
        "attention and a network side by side": (Step(beside, norm=nn.LayerNorm(WIDTH), mix=Attention(), wide=nn.Linear(WIDTH, 20), narrow=nn.Linear(20, WIDTH)), rows()),
        "branches with norms of their own": (Step(lambda own, x: own.narrow(F.gelu(own.wide(own.b(x)))) + own.mix(own.a(x)) + x, a=nn.LayerNorm(WIDTH), b=nn.LayerNorm(WIDTH),
                                                  mix=Attention(), wide=nn.Linear(WIDTH, 20), narrow=nn.Linear(20, WIDTH)), rows()),
        "branches behind each other in a sum": (Step(lambda own, x: x + own.mix(own.a(x)) + own.narrow(F.gelu(own.wide(own.b(x)))), a=nn.LayerNorm(WIDTH), b=nn.LayerNorm(WIDTH),
                                                     mix=Attention(), wide=nn.Linear(WIDTH, 20), narrow=nn.Linear(20, WIDTH)), rows()),
        "branches of one norm behind each other": (Step(lambda own, x: (lambda n: own.narrow(F.gelu(own.wide(n))) + (own.mix(n) + x))(own.norm(x)), norm=nn.LayerNorm(WIDTH),
                                                        mix=Attention(), wide=nn.Linear(WIDTH, 20), narrow=nn.Linear(20, WIDTH)), rows()),
        "branches behind an embedding": (Words(lambda own, ids: own.step_of(own.table(ids)), step_of=Beside()), words()),
        "branches twice": (Step(lambda own, x: own.two(own.one(x)), one=Beside(), two=Beside()), rows()),
        "a sum of three branches": (Step(lambda own, x: sum(layer(x) for layer in own.layers), layers=nn.ModuleList(nn.Linear(WIDTH, 8) for _ in range(3)),
                                         **{"outward": nn.Linear(8, 4)}), rows()),
        "a difference of branches": (Step(lambda own, x: own.a(x) - own.b(x), a=nn.Linear(WIDTH, WIDTH), b=nn.Linear(WIDTH, WIDTH)), rows()),
        "the difference of a Linear and a ReLU": (Step(lambda own, x: own.a(x) - torch.relu(x), a=nn.Linear(WIDTH, WIDTH)), rows()),
        "a residual connection that subtracts": (Step(lambda own, x: x - own.b(torch.relu(own.a(x))), a=nn.Linear(WIDTH, WIDTH), b=nn.Linear(WIDTH, WIDTH)), rows()),
        "factors of tokens": (Step(lambda own, x: x + torch.relu(x) * own.gamma[:, None], gamma=parameter(TOKENS)), rows()),
        "biases of tokens": (Step(lambda own, x: torch.relu(x) + own.beta, beta=parameter(1, TOKENS, 1)), rows()),
        "a sum of Linears of the input": (Sums(nn.Linear(WIDTH, 3), nn.Linear(WIDTH, 3)), rows()),
        "a dilated convolution": (Step(lambda own, x: torch.relu(own.filter(x.mT)).mT, filter=nn.Conv1d(WIDTH, WIDTH, 3, padding=2, dilation=2)), rows()),
        "a dilated causal convolution": (Step(lambda own, x: torch.relu(own.filter(x.mT)[..., :TOKENS]).mT, filter=nn.Conv1d(WIDTH, WIDTH, 3, padding=4, dilation=2)), rows()),
        "a dilated convolution of an image": (nn.Sequential(nn.Conv2d(2, 4, (3, 2), dilation=(2, 1), stride=2, padding=(1, 0)), nn.ReLU(), nn.Flatten(), nn.Linear(24, 3)),
                                              torch.randn(BATCH, 2, 7, 4)),
        "an even kernel with padding 'same'": (nn.Sequential(nn.Conv1d(WIDTH, 8, 4, padding="same"), nn.ReLU(), nn.Conv1d(8, 4, 2, padding="same", dilation=3)), torch.randn(BATCH, WIDTH, 9)),
        "an even kernel with padding 'same', of an image": (nn.Sequential(nn.Conv2d(2, 4, (2, 3), padding="same"), nn.ReLU(), nn.ConstantPad2d((0, 2, 2, 1), 0.0), nn.Conv2d(4, 4, 3, 2, groups=4),
                                                                          nn.Flatten(), nn.Linear(36, 3)), torch.randn(BATCH, 2, 4, 5)),
        "an image without padding": (nn.Sequential(nn.Conv2d(2, 4, (2, 3), padding="valid"), nn.ReLU(), nn.Flatten(), nn.Linear(36, 3)), torch.randn(BATCH, 2, 4, 5)),
        "zeros in front alone": (nn.Sequential(nn.ConstantPad1d((1, 0), 0.0), nn.Conv1d(WIDTH, 8, 3), nn.ReLU(), nn.Conv1d(8, 4, 1)), torch.randn(BATCH, WIDTH, 9)),
        "a convolution without some of its last tokens": (nn.Sequential(nn.Conv1d(WIDTH, 8, 5, padding=3), Function(lambda x: x[..., :-2]), nn.ReLU(), nn.Conv1d(8, 4, 1)), torch.randn(BATCH, WIDTH, 9)),
        "averages that count padding": (nn.Sequential(nn.Conv1d(WIDTH, 8, 1), nn.AvgPool1d(3, 2, 1), nn.Conv1d(8, 4, 1)), torch.randn(BATCH, WIDTH, 9)),
        "averages around each pixel, without padding": (nn.Sequential(nn.Conv2d(2, 4, 1), nn.AvgPool2d(3, 1, 1, count_include_pad=False), nn.Conv2d(4, 3, 1), nn.Flatten(), nn.Linear(90, 3)),
                                                        torch.randn(BATCH, 2, 6, 5)),
        "maxima around each pixel": (nn.Sequential(nn.Conv2d(2, 4, 1), nn.MaxPool2d((3, 5), 1, (1, 2)), nn.Conv2d(4, 3, 1), nn.Flatten(), nn.Linear(90, 3)), torch.randn(BATCH, 2, 6, 5)),
        "averages around each pixel, less itself": (nn.Sequential(nn.Conv2d(2, 4, 1), Function(lambda x: x + F.avg_pool2d(x, 3, 1, 1, count_include_pad=False) - x * 2), nn.Conv2d(4, 3, 1),
                                                                  nn.AdaptiveAvgPool2d(1), nn.Flatten()), torch.randn(BATCH, 2, 6, 5)),
        "averages without padding over the end": (nn.Sequential(nn.Conv2d(2, 4, 1), nn.AvgPool2d((3, 2), (2, 3), 1, ceil_mode=True, count_include_pad=False), nn.Flatten(),
                                                                nn.Linear(64, 3)), torch.randn(BATCH, 2, 7, 9)),
        "averages of padding over the end": (nn.Sequential(nn.Conv1d(WIDTH, 8, 1), nn.AvgPool1d(3, 2, 1, ceil_mode=True), nn.Conv1d(8, 4, 1)), torch.randn(BATCH, WIDTH, 10)),
        "maxima with more padding than stride": (nn.Sequential(nn.Conv1d(WIDTH, 8, 1), nn.MaxPool1d(8, 2, 4), nn.Conv1d(8, 4, 1)), torch.randn(BATCH, WIDTH, 21)),
        "maxima over the end": (nn.Sequential(nn.Conv2d(2, 4, 1), nn.MaxPool2d(2, ceil_mode=True), nn.ReLU(), nn.Conv2d(4, 3, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
                                torch.randn(BATCH, 2, 5, 7)),
        "a GroupNorm": (nn.Sequential(nn.Conv1d(WIDTH, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv1d(8, 4, 1)), torch.randn(BATCH, WIDTH, 9)),
        "a GroupNorm of an image": (nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(4, 4, eps=1e-3, affine=False), nn.ReLU(), nn.Conv2d(4, 3, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
                                    torch.randn(BATCH, 2, 6, 5)),
        "a GroupNorm of tokens": (Step(lambda own, x: own.norm(x.mT).mT, norm=nn.GroupNorm(1, WIDTH)), rows()),
        "PReLU": (Step(lambda own, x: own.act(x), act=nn.PReLU()), rows()),
        "PReLU of channels": (nn.Sequential(nn.Conv1d(WIDTH, 6, 3), nn.PReLU(6), nn.Conv1d(6, 4, 1)), torch.randn(BATCH, WIDTH, 9)),
        "a circular convolution of the input": (nn.Sequential(nn.Conv1d(WIDTH, 8, 3, padding=1, padding_mode="circular"), nn.Flatten(), nn.Linear(8 * TOKENS, 3)),
                                                torch.randn(BATCH, WIDTH, TOKENS)),
        "ELU": (Step(lambda own, x: F.elu(own.mix(F.elu(x, inplace=True))), mix=nn.Linear(WIDTH, WIDTH)), rows()),
        "leaky ReLU": (Step(lambda own, x: F.leaky_relu(own.mix(F.leaky_relu(x)), 0.2), mix=nn.Linear(WIDTH, WIDTH)), rows()),
        "hard-swish": (Step(lambda own, x: x * F.relu6(x + 3) / 6), rows()),
        "a Linear of windows that overlap": (Step(lambda own, x: own.mix(torch.relu(x).unfold(1, 3, 2).flatten(2)), mix=nn.Linear(3 * WIDTH, WIDTH)), rows()),
        "a Linear of windows that overlap, tokens turned around": (Step(lambda own, x: own.mix(torch.relu(x).unfold(1, 2, 1).transpose(2, 3).flip(2).flatten(2)), mix=nn.Linear(2 * WIDTH, WIDTH)), rows()),
        "tokens that are cut into more": (Step(lambda own, x: own.layer(x.reshape(len(x), 2 * TOKENS, -1)).mean(1), layer=nn.Linear(WIDTH // 2, WIDTH)), rows()),
        "a BatchNorm behind a Linear": (Step(lambda own, x: torch.relu(own.norm(x.mT).mT), norm=norm), rows()),
        "a factor of a branch": (Step(lambda own, x: x + 0.5 * own.branch(x), branch=nn.Linear(WIDTH, WIDTH)), rows()),
        "a bias behind a factor": (Step(lambda own, x: torch.relu(0.5 * own.mix(x) + own.beta), mix=nn.Linear(WIDTH, WIDTH, bias=False), beta=parameter(WIDTH)), rows()),
        "a factor of a part of a gate": (Step(lambda own, x: own.back(torch.tanh(0.5 * own.a(x)) * own.b(x)), a=nn.Linear(WIDTH, 20), b=nn.Linear(WIDTH, 20), back=nn.Linear(20, WIDTH)), rows()),
        "factors of both parts of a gate": (Step(lambda own, x: own.back(torch.tanh(0.5 * own.a(x)) * (2 * own.b(x))), a=nn.Linear(WIDTH, 20), b=nn.Linear(WIDTH, 20), back=nn.Linear(20, WIDTH)),
                                            rows()),
        "a factor that no tensor takes": (Step(lambda own, x: torch.relu(x) * 3), rows()),
        "an input that is normalized by numbers": (nn.Sequential(Function(lambda x: (x - 0.4) / 0.2), nn.Linear(WIDTH, 4)), rows()),
        "a table times a number": (Words(lambda own, ids: own.table(ids) * WIDTH ** 0.5), words()),
        "a table whose row 0 is padding": (Words(lambda own, ids: own.padded(ids), padded=nn.Embedding(15, WIDTH, padding_idx=0)), words(1)),
        "a padding mask": (Words(lambda own, ids: own.layer(own.table(ids), src_key_padding_mask=ids == 0), layer=encoder()), words()),
        "a padding mask for each head": (Words(lambda own, ids: own.layer(own.table(ids), src_mask=pad(ids)), layer=encoder()), words()),
        "a causal padding mask": (Words(lambda own, ids: own.layer(own.table(ids), src_mask=torch.full((TOKENS, TOKENS), -math.inf).triu(1), src_key_padding_mask=ids == 0),
                                        layer=encoder()), words(1)),
        "a padding mask of -1e9 and the first token": (Padded(hide_keys(-1e9)), words()),
        "a padding mask of another id, and a mean of all tokens": (Padded(hide_keys(-math.inf, 3), lambda own, ids, x: x.mean(1)), words()),
        "a padding mask that is added": (Padded(lambda own, ids, s: s + (1.0 - (ids > 0).float())[:, None, None, :] * -10000.0), words()),
        "a padding mask in place, for each query": (Padded(lambda own, ids, s: s.masked_fill_((ids != 0).unsqueeze(1).repeat(1, TOKENS, 1).unsqueeze(1) == 0, -1e9)), words()),
        "a padding mask by a product": (Padded(lambda own, ids, s: s * (ids != 0)[:, None, None].float() - 1e9 * (ids == 0)[:, None, None].float()), words()),
        "a padding mask of a causal model": (Padded(hide_keys(-1e9, 0, torch.ones(TOKENS, TOKENS).triu(1).bool()), lambda own, ids, x: x), words(1)),
        "a mean of tokens that are no padding": (Padded(hide_keys(-1e9), mean_of_words), words()),
        "a mean of tokens that are no padding, filled": (Padded(hide_keys(-1e9), lambda own, ids, x: x.masked_fill((ids == 0)[..., None], 0.0).sum(1) / (ids != 0).sum(1, keepdim=True)),
                                                         words(1)),
        "a tied head": (tied, words()),
        "a tied head with a bias": (biased, words()),
        "a tied head of the last token": (tied_last(), words()),
        "rotary positions by complex numbers": (Block(Turned(turn=by_complex(angles))), rows()),
        "norms of heads": (Block(Turned(of_heads)), rows()),
        "rotary positions that turn backwards": (Block(Turned(turn=by_complex(-angles))), rows()),
        "rotary positions of halves that turn backwards": (Block(Turned(turn=lambda y: by_halves(y, -1))), rows()),
        "norms of heads before rotary positions": (Block(Turned(root_mean_square, by_halves)), rows()),
        "norms of heads before complex rotary positions": (Step(lambda own, x: x + own.mix(x), mix=Turned(root_mean_square, by_complex(angles))), rows()),
        "probabilities": (nn.Sequential(nn.Linear(WIDTH, 3), nn.Softmax(-1)), rows()),
        "probabilities of an image's class": (nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 3), nn.Softmax(dim=1)), torch.randn(BATCH, 2, 4, 5)),
        "log-probabilities": (nn.Sequential(nn.Linear(WIDTH, 4), nn.LogSoftmax(-1)), rows()),
        "an unread buffer": (Unread(), rows()),
        "a module that is its own layer": (nn.Linear(WIDTH, 3), rows()),
        "a jit function": (Step(lambda own, x: scripted(x)), rows()),
        "zero-copy NumPy": (Step(lambda own, x: torch.from_numpy(x.detach().numpy())), rows()),
        "an autograd.Function": (Step(lambda own, x: Doubled.apply(x)), rows()),
        "keys that are written into a cache": (Block(Turned(turn=lambda y: torch.zeros(len(y), 9, *y.shape[2:], dtype=y.dtype).index_copy_(1, torch.arange(TOKENS) + 2, y)[:, 2:2 + TOKENS])), rows()),
        "a write in place that a view sees": (Step(lambda own, x: torch.relu_(x.view(-1, WIDTH)).view(x.shape)), rows()),
        "a batch of one": (Block(Attention()), rows()[:1]),
        "a batch of as many as tokens": (Block(Attention()), torch.randn(TOKENS, TOKENS, WIDTH)),
        "as many tokens as features": (Block(Attention()).requires_grad_(True), torch.randn(2, TOKENS, WIDTH)),
        "constants by torch.Tensor": (Step(lambda own, x: x * torch.Tensor([2.0] * WIDTH) + torch.Tensor(WIDTH).fill_(1) + torch.Tensor(range(WIDTH))), rows()),
        "a mask in a frozen parameter": (with_parts(Block(Attention(lambda own, x, s: s + own.hidden)), hidden=nn.Parameter(torch.full((TOKENS, TOKENS), -math.inf).triu(1), False)), rows()),
        "sharp weights that floats round": (sharp(), rows()),
        "frozen weights": (Block(Attention()).requires_grad_(False), rows()),
        **of_pytorch2(),
        "a constant behind a Linear without a bias": (Step(lambda own, x: own.mix(x) + own.shift, mix=nn.Linear(WIDTH, WIDTH, bias=False), shift=torch.rand(WIDTH)), rows()),
        "a factor of a constant behind a Linear without a bias": (Step(lambda own, x: (own.mix(x) + own.shift) * 0.5, mix=nn.Linear(WIDTH, WIDTH, bias=False), shift=torch.rand(WIDTH)), rows()),
        "a factor of two Linears side by side, one with a constant": (Step(lambda own, x: torch.cat([own.a(x) + own.shift, own.b(x)], -1) * 0.5, a=nn.Linear(WIDTH, 4, bias=False),
                                                                           b=nn.Linear(WIDTH, 8), shift=torch.rand(4)), rows()),
        "a factor of a norm by F.normalize": (Step(lambda own, x: F.normalize(x, dim=-1) * 0.5 * own.gamma * 3, gamma=parameter(WIDTH)), rows()),
        "a factor of a factor that no tensor takes": (Step(lambda own, x: torch.relu(own.mix(torch.relu(x) * 3 * 2) * 2) * torch.rand(WIDTH, generator=torch.Generator().manual_seed(3)) * 4,
                                                           mix=nn.Linear(WIDTH, WIDTH)), rows()),
        "a constant behind a Linear with a bias": (Step(lambda own, x: x + own.shift, shift=torch.rand(WIDTH)), rows()),
        "constant factors behind a Linear": (Step(lambda own, x: x * own.factors, factors=torch.rand(WIDTH) + 0.5), rows()),
        "constants that are added to queries": (shifted_queries(False), rows()),
        "attention's weights over a number": (Block(Attention(after=lambda weights: weights / 3)), rows()),
        "a token of each number, behind a trained one": (Table(lambda x, token: torch.cat([token, x], 1), lambda x: x[:, 0]), torch.randn(BATCH, TOKENS)),
        "a token of each number, in front of a trained one": (Table(lambda x, token: torch.cat([x, token], 1), lambda x: x[:, -1]), torch.randn(BATCH, TOKENS)),
        "a token of each number, and the mean of them and a trained one": (Table(lambda x, token: torch.cat([x, token], 1), lambda x: x.mean(1)), torch.randn(BATCH, TOKENS)),
        "a token of each number of a normalized row": (Table(lambda x, token: x, lambda x: x.mean(1), nn.LayerNorm(TOKENS)), torch.randn(BATCH, TOKENS)),
        "positions of a trained token behind the others": (Table(lambda x, token: torch.cat([x, token], 1), lambda x: x[:, -1], after=lambda own, x: x + own.places), torch.randn(BATCH, TOKENS)),
        "the sum of tokens times a softmax of them": (Step(lambda own, x: (x * own.score(x).softmax(1)).sum(1), score=nn.Linear(WIDTH, 1)), rows()),
        "the sum of tokens times a softmax of one row": (Step(lambda own, x: (own.score(x).squeeze(-1).softmax(1)[..., None] * x).sum(1), score=nn.Linear(WIDTH, 1)), rows()),
        "a residual connection of a branch, beside another": (Step(lambda own, x: (lambda y: y + own.b(y) + own.c(x))(torch.relu(own.a(x))), **{key: nn.Linear(WIDTH, WIDTH) for key in "abc"}), rows()),
        "a residual connection of a branch, and one around it": (Step(lambda own, x: x + (lambda y: y + own.b(y))(torch.relu(own.a(x))) + own.c(x), **{key: nn.Linear(WIDTH, WIDTH) for key in "abc"}), rows()),
        "a norm of the last token by a formula": (Step(lambda own, x: (lambda y: (y - y.mean(-1, keepdim=True)) / (y.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt())(torch.relu(x)[:, -1])), rows()),
        "the number of samples in forward": (Step(lambda own, x: own.mix(x.reshape(BATCH, TOKENS, -1)) + torch.zeros(BATCH, 1, 1), mix=encoder()), rows()),
        "the number of rows in forward": (nn.Sequential(nn.Linear(WIDTH, 8), Function(lambda x: torch.relu(x).view(BATCH, 8)), nn.Linear(8, 3)), torch.randn(BATCH, WIDTH)),
        "a tied head, and an embedding times a number": (scaled_tied(), words()),
        "rotary angles in a complex buffer": (Block(Turned(lambda own, y, part: torch.view_as_real(torch.view_as_complex(y.unflatten(-1, (-1, 2))) * part.turns[:, None]).flatten(3),
                                                           make=lambda: Buffered(turns=torch.polar(torch.ones(TOKENS, 2), angles.float())))), rows()),
        "a Linear for each number": (OfEach(lambda x, at: x[:, at:at + 1]), torch.randn(BATCH, TOKENS)),
        "a Linear for each number, behind a trained token": (OfEach(lambda x, at: x[:, at:at + 1], token=parameter(WIDTH)), torch.randn(BATCH, TOKENS)),
        "a Linear for each variable": (OfEach(lambda x, at: x[..., at], 7), torch.randn(BATCH, 7, TOKENS)),
        "a Linear for each variable, channels first": (OfEach(lambda x, at: x[:, at], 7), torch.randn(BATCH, TOKENS, 7)),
        "a forecast by a Linear for each variable": (OfEach(lambda x, at: x[..., at], 7, 2, nn.Identity()), torch.randn(BATCH, 7, TOKENS)),
        "a Linear to one number, by a product with a vector": (Step(lambda own, x: torch.tanh(x) @ own.weight, weight=parameter(WIDTH), outward=nn.Linear(TOKENS, 4)), rows()),
        "a ReLU as a choice": (Step(lambda own, x: torch.where(x > 0, x, torch.zeros_like(x))), rows()),
        "a ReLU as a factor": (Step(lambda own, x: x * (x >= 0)), rows()),
        "an ELU as a choice": (Step(lambda own, x: x.exp().sub(1).masked_fill(x > 0, 0) + x.masked_fill(x < 0, 0)), rows()),
        "positions of more features than tokens have": (Step(lambda own, x: x + own.positions, inward=nn.Identity(), positions=parameter(TOKENS, WIDTH)), rows(1)),
        "positions whose memory is transposed": (Step(lambda own, x: x + own.positions[:TOKENS], positions=nn.Parameter(torch.randn(WIDTH, 9).t())), rows()),
        "one vector times each number": (Table(lambda x, token: x, lambda x: x.mean(1), same=True), torch.randn(BATCH, TOKENS)),
        **of_groups(),
        "a Linear that is the model, with a BatchNorm in it": (Itself(True), torch.randn(BATCH, WIDTH)),
        "a Linear without a bias that is the model, with a BatchNorm in it": (Itself(False), torch.randn(BATCH, WIDTH)),
        "an empty tensor in front of the tokens": (Step(lambda own, x: torch.cat([x.new_zeros(len(x), 0, WIDTH), x], 1)), rows()),
        "rows of a parameter by their ids": (Words(lambda own, ids: own.places[ids], places=parameter(15, WIDTH)), words()),
        "a Linear over tokens by bmm": (Step(lambda own, x: torch.bmm(own.mix.expand(len(x), -1, -1), x), mix=parameter(7, TOKENS)), rows()),
        "a convolution of each row of the input": (nn.Sequential(Function(lambda x: x.reshape(-1, 1, WIDTH)), nn.Conv1d(1, 2, 3), Function(
            lambda x: x.reshape(-1, TOKENS, 2 * WIDTH - 4)), nn.Linear(2 * WIDTH - 4, 3)), rows()),
        "attention of the input itself": (nn.Sequential(Function(lambda x: (x @ x.mT / 4).softmax(-1) @ x), nn.Linear(WIDTH, WIDTH)), rows()),
        "no output projection, and a Linear of other features": (Step(lambda own, x: (own.q(x) @ own.k(x).mT).softmax(-1) @ own.v(x), **{
            name: nn.Linear(WIDTH, WIDTH) for name in "qkv"}), rows()),
    }


def of_groups():
    """Groups of tokens in place of the batch."""
    return {
        "a model for each variable": (Variables(), series()),
        "a model for each variable, with a BatchNorm": (Variables(norm=nn.BatchNorm1d), series()),
        "a model for each variable, without its mean and deviation": (Variables(revin=True), series()),
        "a model of overlapping patches for each variable": (Variables(revin=True, overlapping=True), series()),
        "a model of patches over the end for each variable": (Variables(revin=True, overlapping=True, end=3), series()),
        "a model of patches behind the end for each variable": (Variables(revin=True, end=6), series()),
        "a class token for each variable": (Variables(lambda own, z: torch.cat([own.token.expand(len(z), -1, -1), z], 1), token=parameter(1, 1, WIDTH)), series()),
        "blocks for each variable": (Variables(lambda own, z: own.blocks(z), blocks=nn.Sequential(encoder(), encoder())), series()),
        "attention along rows": (Grid(ALONG_ROWS), pixels()),
        "attention within groups of tokens, which are the output": (nn.Sequential(nn.Linear(WIDTH, WIDTH), Function(lambda x: x.unflatten(1, (2, 3)).flatten(0, 1)), Attention(),
                                                                                  Function(lambda x: x.unflatten(0, (-1, 2)).flatten(1, 2)), nn.Linear(WIDTH, 4)), torch.randn(BATCH, 6, WIDTH)),
        "attention along columns, which are the output": (nn.Sequential(nn.Linear(WIDTH, WIDTH), Function(lambda x: x.unflatten(1, (2, 3)).transpose(1, 2).flatten(0, 1)), Attention(),
                                                                        Function(lambda x: x.unflatten(0, (-1, 3)).flatten(1, 2)), nn.Linear(WIDTH, 4)), torch.randn(BATCH, 6, WIDTH)),
        "attention along rows, then along columns": (Grid(ALONG_ROWS, ALONG_COLUMNS), pixels()),
        "attention within windows": (Grid(WINDOWS), pixels()),
        "attention within windows, then between pixels of one place in them": (Grid(WINDOWS, SAME_PLACES), pixels()),
        "attention between pixels of one place, beside all pixels": (Grid(SAME_PLACES, keep=True), pixels()),
        "a residual connection around a block": (Step(lambda own, x: x + own.layer(x), layer=encoder()), rows()),
        "blocks beside each other": (Step(lambda own, x: own.a(x) + torch.relu(own.b(x)), a=encoder(), b=nn.Sequential(encoder(), encoder())), rows()),
        "a ReLU beside a Linear": (Step(lambda own, x: torch.cat([torch.relu(own.a(x)), own.b(x)], -1), a=nn.Linear(WIDTH, 8), b=nn.Linear(WIDTH, 4)), rows()),
        "a Linear of two values side by side": (Step(lambda own, x: own.mix(torch.cat([torch.relu(own.a(x)), torch.tanh(own.b(x))], -1)), a=nn.Linear(WIDTH, 3), b=nn.Linear(WIDTH, 5),
                                                     mix=nn.Linear(8, WIDTH)), rows()),
    }


def sharp():
    """Blocks whose scores are so large that an error of rounding chooses another token."""
    blocks = nn.Sequential(*(Block(Attention(weights=6.0), tokenwise=True) for _ in range(3)))
    for block in blocks[:-1]:
        block.head = nn.Linear(WIDTH, WIDTH)
    return blocks


def of_pytorch2():
    """The same by operators of PyTorch 2."""
    ops, root = torch.ops.pytorch2, lambda **more: Turned(lambda own, y, part: torch.ops.pytorch2._fused_rms_norm(y, [4], part.weight, 1e-6)[0], **more)  # noqa: E731
    seen = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
    added = torch.zeros(TOKENS, TOKENS).masked_fill(~seen, -math.inf)
    norms = {name: (nn.Sequential(nn.Conv1d(WIDTH, 8, 3), Normed(function, 8), nn.ReLU(), nn.Conv1d(8, 4, 1)), torch.randn(BATCH, WIDTH, 9)) for name, function in {
        "a BatchNorm in one operation": lambda own, x: ops._native_batch_norm_legit(x, own.weight, own.bias, own.running_mean, own.running_var, False, 0.1, 1e-5)[0],
        "a BatchNorm of an exported program": lambda own, x: ops._native_batch_norm_legit_no_training(x, own.weight, own.bias, own.running_mean, own.running_var, 0.1, 1e-5)[0],
        "a BatchNorm without an update": lambda own, x: ops._batch_norm_no_update(x, own.weight, own.bias, own.running_mean, own.running_var, 0.1, 1e-5)[0]}.items()}
    return {
        "attention in one operation": (Block(Fused(on_cpu)), rows()),
        "causal attention in one operation": (Block(Fused(lambda own, q, k, v, _: ops._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, True)[0]), tokenwise=True), rows()),
        "attention in one operation with a mask": (Block(Fused(lambda own, q, k, v, _: ops._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=added)[0])), rows()),
        "attention in one operation with a mask of bool": (Block(Fused(lambda own, q, k, v, _: ops._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=seen)[0])), rows()),
        "attention in one operation with its own scale": (Block(Fused(lambda own, q, k, v, _: ops._scaled_dot_product_flash_attention_for_cpu(q, k, v, scale=0.3)[0])), rows()),
        "attention in one operation, of few heads of keys": (Block(Fused(lambda own, q, k, v, _: ops._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, True)[0], shared=3)), rows()),
        "attention of PyTorch 2.1": (Block(Fused(lambda own, q, k, v, _: ops._scaled_dot_product_flash_attention(q, k, v, 0.0, True)[0])), rows()),
        "attention in one operation with a mask, of CUDA": (Block(Fused(lambda own, q, k, v, _: ops._scaled_dot_product_efficient_attention(q, k, v, added.expand(len(q), HEADS, -1, -1), True)[0])),
                                                            rows()),
        "attention in one operation of another device": (Block(Fused(lambda own, q, k, v, _: ops._scaled_dot_product_fused_attention_overrideable(q, k, v, is_causal=True)[0])), rows()),
        "attention that is not taken apart": (Block(Fused(lambda own, q, k, v, _: ops.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True), shared=3)), rows()),
        "attention in one operation with a padding mask": (Words(lambda own, ids: own.mix(own.table(ids), (ids != 0)[:, None, None]), mix=Fused(
            lambda own, q, k, v, mask: ops._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=mask)[0])), words()),
        "attention in one operation with an added padding mask": (Words(lambda own, ids: own.mix(own.table(ids), (ids == 0)[:, None, None].float() * -1e9), mix=Fused(
            lambda own, q, k, v, mask: ops._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=mask)[0])), words()),
        "a softmax of PyTorch 2.5": (Block(Fused(lambda own, q, k, v, _: ops._safe_softmax(q @ k.mT / 2 + added, -1) @ v)), rows()),
        "a factor of a branch": (Step(lambda own, x: x + own.alpha * torch.relu(own.mix(x)), alpha=nn.Parameter(torch.tensor([0.5])), mix=nn.Linear(WIDTH, WIDTH)), rows()),
        "a factor of a branch without dimensions": (Step(lambda own, x: x + own.mix(x) * own.alpha, alpha=nn.Parameter(torch.tensor(-0.5)), mix=nn.Linear(WIDTH, WIDTH)), rows()),
        "a factor of attention that starts at zero": (Step(lambda own, x: x + own.alpha * own.mix(x), alpha=nn.Parameter(torch.zeros(())), mix=Attention()), rows()),
        "RMSNorm in one operation": (Step(lambda own, x: ops._fused_rms_norm(x, [WIDTH], own.gamma, None)[0], gamma=parameter(WIDTH)), rows()),
        "norms of heads in one operation": (Block(root()), rows()),
        "norms of heads in one operation, and rotary positions": (Block(root(turn=by_halves)), rows()),
        **norms,
    }


class Normed(nn.BatchNorm1d):
    def __init__(self, function, width):
        super().__init__(width)
        self.function = function
        self.running_mean.normal_(), self.running_var.uniform_(0.5, 2)

    def forward(self, x):
        return self.function(self, x)


class Itself(nn.Linear):
    """A Linear that is the model, with a BatchNorm in it."""

    def __init__(self, bias):
        super().__init__(WIDTH, 3, bias)
        self.norm = nn.BatchNorm1d(3)
        self.norm.running_mean.normal_(), self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        return self.norm(super().forward(x))


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x + x

    @staticmethod
    def backward(context, dy):
        return dy + dy


@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1.0 + torch.erf(x * 0.7071067811865476))


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Added(Step):
    """x + step(x)"""

    def forward(self, x):
        return x + self.step(self, x)


class Scaled(nn.Module):
    """Factors and a bias of channels."""

    def __init__(self, channels):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.rand(channels, 1, 1)), parameter(channels, 1, 1)

    def forward(self, x):
        return x * self.gamma + self.beta


class Variables(nn.Module):
    """A model of patches for each variable, which takes the place of the batch; `change(own, z)` is behind its positions, and `take(own, y)` at the end."""

    def __init__(self, change=None, take=lambda own, y: y, revin=False, norm=nn.LayerNorm, overlapping=False, size=6, end=0, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.change, self.take, self.revin, self.size, self.step = change, take, revin, size, size // 2 if overlapping else size
        self.end, count = end, (18 + end - size) // self.step + 1
        self.embed, self.positions, self.mix, self.norm = nn.Linear(size, WIDTH), parameter(count, WIDTH), Attention(), norm(WIDTH)
        self.head = nn.Linear((count + ("token" in parts)) * WIDTH, 5)

    def forward(self, x):
        mean, deviation = x.mean(1, keepdim=True), torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
        x = (x - mean) / deviation if self.revin else x
        batch, _, variables = x.shape
        z = self.embed(F.pad(x.transpose(1, 2), (0, self.end), mode="replicate").unfold(2, self.size, self.step)).flatten(0, 1) + self.positions
        z = z if self.change is None else self.change(self, z)
        z = z + self.mix(z)
        z = self.norm(z) if isinstance(self.norm, nn.LayerNorm) else self.norm(z.transpose(1, 2)).transpose(1, 2)
        y = self.head(z.reshape(batch, variables, -1)).transpose(1, 2)
        return self.take(self, y * deviation + mean if self.revin else y)


class Grid(nn.Module):
    """Attention within groups of the pixels of an image, [batch, height, width, features]: `take` makes groups of them, and `back` pixels of groups."""

    def __init__(self, *steps, keep=False):
        super().__init__()
        self.steps, self.keep = steps, keep
        self.embed, self.norms, self.mixes = nn.Linear(3, WIDTH), nn.ModuleList(nn.LayerNorm(WIDTH) for _ in steps), nn.ModuleList(Attention() for _ in steps)
        self.join, self.head = nn.Conv2d(2 * WIDTH, WIDTH, 3, padding=1), nn.Linear(WIDTH, 4)

    def forward(self, x):
        x = y = self.embed(x)
        for (take, back), norm, mix in zip(self.steps, self.norms, self.mixes):
            x = x + back(mix(take(norm(x))), x.shape)
        if self.keep:
            x = self.join(torch.cat([y, x], -1).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return self.head(x.mean((1, 2)))


ALONG_ROWS = lambda x: x.flatten(0, 1), lambda z, shape: z.view(shape)  # noqa: E731
ALONG_COLUMNS = lambda x: x.transpose(1, 2).flatten(0, 1), lambda z, shape: z.view(shape[0], shape[2], shape[1], -1).transpose(1, 2)  # noqa: E731
WINDOWS = lambda x: x.unflatten(1, (-1, 2)).unflatten(3, (-1, 3)).transpose(2, 3).reshape(-1, 6, WIDTH), lambda z, shape: z.view(  # noqa: E731
    shape[0], shape[1] // 2, shape[2] // 3, 2, 3, WIDTH).transpose(2, 3).reshape(shape)
SAME_PLACES = lambda x: x.unflatten(1, (-1, 2)).unflatten(3, (-1, 3)).permute(0, 2, 4, 1, 3, 5).reshape(len(x) * 6, -1, WIDTH), lambda z, shape: z.view(  # noqa: E731
    shape[0], 2, 3, shape[1] // 2, shape[2] // 3, WIDTH).permute(0, 3, 1, 4, 2, 5).reshape(shape)


def pixels(height=4, width=6):
    return torch.randn(BATCH, height, width, 3)


def series():
    return torch.randn(BATCH, 18, 3)


class Rows(nn.Module):
    """A Linear of all tokens."""

    def __init__(self, flatten):
        super().__init__()
        self.inward, self.outward, self.flatten = nn.Linear(WIDTH, WIDTH), nn.Linear(TOKENS * WIDTH, 3), flatten

    def forward(self, x):
        return self.outward(self.flatten(torch.relu(self.inward(x))))


class Features(nn.Module):
    """[batch, features, time] as Linear takes it."""

    def __init__(self):
        super().__init__()
        self.inward, self.outward = nn.Linear(WIDTH, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.outward(torch.relu(self.inward(x.permute(0, 2, 1))).mean(1))


class Weights(nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.weight = parameter(*shape)


class Buffered(nn.Module):
    def __init__(self, **buffers):
        super().__init__()
        for name, value in buffers.items():
            self.register_buffer(name, value)


class Unread(nn.Module):
    """Buffers that masks are made of, and a parameter that nothing reads."""

    def __init__(self):
        super().__init__()
        self.inward, self.outward, self.spare = nn.Linear(WIDTH, 8), nn.Linear(8, 3), parameter(50, 50)
        self.register_buffer("mask", torch.full((40, 40), -math.inf).triu(1))

    def forward(self, x):
        return self.outward(torch.relu(self.inward(x)))


def refused():
    """name -> (module, sample, texts of the message)"""
    torch.manual_seed(12)
    scores = lambda change, **parts: (with_parts(Block(Attention(change)), **parts), rows())  # noqa: E731
    queries = lambda own, ids, s: s.masked_fill((ids == 0)[:, None, :, None], -1e9)  # noqa: E731
    return {
        "one step more for other inputs": (nn.Sequential(nn.Linear(WIDTH, 3), Function(lambda x: x.relu() if bool(x[0, 0, 0] > x[1, 0, 0]) else x)), rows(),
                                           ["forward computes something else for other inputs: relu"]),
        "one Linear for each variable": (OfEach(lambda x, at: x[..., at], 7, shared=True), torch.randn(BATCH, 7, TOKENS), ["is in several places of a layer"]),
        "constants beside the bias of queries": (shifted_queries(True), rows(), ["a constant that is added to queries, keys or values, beside the bias of their Linear"]),
        "keys and values of several values": (Block(Attending(values=torch.relu)), rows(), ["whose keys and values come from several places"]),
        "queries behind a ReLU": (Block(Attending(queries=lambda own, q: torch.relu(q))), rows(), ["queries or keys that depend on positions"]),
        "queries that are squared": (Block(Attending(queries=lambda own, q: q ** 2)), rows(), ["queries, keys or values that are changed by more than a factor"]),
        "queries with a constant of each position": (Block(Attending(queries=lambda own, q: q + torch.arange(TOKENS)[:, None] * 0.1)), rows(), ["a constant of each position"]),
        "queries times their position": (Block(Attending(queries=lambda own, q: q * (1 + torch.arange(TOKENS)[:, None] * 0.1))), rows(), ["in another way than rotary positions"]),
        "a parameter beside the bias of queries": (with_parts(Block(Attending(queries=lambda own, q: q + own.b)), b=parameter(WIDTH)), rows(), ["is no bias of a Linear without one", "b"]),
        "queries of some tokens": (Step(lambda own, x: own.mix(x), mix=Attending(queries=lambda own, q: q[:, :1])), rows(), ["attention whose queries are some of the tokens"]),
        "attention to other rows": (nn.Sequential(Convolved(), nn.Linear(WIDTH, 4)), rows(), ["attention to another sequence, outside of a decoder layer"]),
        "attention's weights turned around": (Block(Attending(after=lambda own, w: w.flip(-2))), rows(), ["attention's weights in another order"]),
        "attention's weights times a parameter of 1": (with_parts(Block(Attending(after=lambda own, w: w * own.one)), one=nn.Parameter(torch.ones(1))), rows(), ["attention's weights", "attention.one"]),
        "a mask that hides everything": (*scores(lambda own, x, s: s.masked_fill(torch.ones(TOKENS, TOKENS, dtype=torch.bool), -1e9)), ["a mask that hides everything"]),
        "a sum of Linears of parts of the input": (Step(lambda own, x: own.inner(x[..., :5]) + own.outer(x[..., 5:]), inward=nn.Identity(), inner=nn.Linear(5, WIDTH),
                                                        outer=nn.Linear(WIDTH - 5, WIDTH)), rows(), ["layers that take different parts of the input", "add of"]),
        "a product of Linears of parts of the input": (Step(lambda own, x: own.inner(x[..., :5]) * own.outer(x[..., 5:]).relu(), inward=nn.Identity(), inner=nn.Linear(5, WIDTH),
                                                            outer=nn.Linear(WIDTH - 5, WIDTH)), rows(), ["layers that take different parts of the input", "mul"]),
        "scores times 0": (*scores(lambda own, x, s: s * torch.zeros(TOKENS)), ["scores times 0"]),
        "queries times 0": (Block(Attending(queries=lambda own, q: q * 0)), rows(), ["attention"]),
        "heads with numbers of several tokens": (Step(lambda own, x: attend(own, x, lambda y: y.reshape(len(y), HEADS, TOKENS, -1)).transpose(1, 2).flatten(2), **projections()), rows(), ["heads with numbers of several tokens; split features by view"]),
        "heads that are not put side by side": (Step(lambda own, x: attend(own, x, lambda y: y.unflatten(-1, (HEADS, -1)).transpose(1, 2)).reshape(x.shape), **projections()), rows(),
                                                ["rows with numbers of several tokens' heads; put heads side by side"]),
        "rows of padding that are 0": (Words(lambda own, ids: own.mix(own.table(ids)).masked_fill((ids == 0)[..., None], 0), mix=Attention()), words(), ["a choice by the input's numbers; rows of padding"]),
        "a factor of each head": (*scores(lambda own, x, s: s * torch.arange(1.0, HEADS + 1)[:, None, None]), ["whose heads have factors of their own"]),
        "heads that share keys, in turn": (Step(lambda own, x: x + own.o(of_two(own, x, lambda y: y.repeat(1, 2, 1, 1))), q=nn.Linear(WIDTH, 16), k=nn.Linear(WIDTH, 8), v=nn.Linear(WIDTH, 8),
                                                o=nn.Linear(16, WIDTH)), rows(), ["is in several places of a layer"]),
        "weights of tokens behind a tanh": (Step(lambda own, x: (torch.tanh(own.pool(x)).softmax(1).mT @ x).squeeze(1), pool=nn.Linear(WIDTH, 1)), rows(), ["not a softmax of a Linear"]),
        "a maximum of two values": (Step(lambda own, x: torch.max(own.a(x), own.b(x)), a=nn.Linear(WIDTH, WIDTH), b=nn.Linear(WIDTH, WIDTH)), rows(), ["attune has no layer for this: maximum"]),
        "a softmax over samples": (Step(lambda own, x: x.softmax(0)), rows(), ["a softmax over the batch"]),
        "a matrix of each head": (Step(lambda own, x: torch.einsum("bthd,hde->bthe", x.view(*x.shape[:2], HEADS, -1), own.m).flatten(2), m=parameter(HEADS, 4, 4)), rows(),
                                  ["a constant matrix for each head"]),
        "an addend with a factor": (Step(lambda own, x: torch.baddbmm(x, x, own.m.expand(len(x), -1, -1), beta=2), m=parameter(WIDTH, WIDTH)), rows(), ["a product whose addend has a factor"]),
        "a transposed convolution": (Step(lambda own, x: own.c(x.mT).mT, c=nn.ConvTranspose1d(WIDTH, WIDTH, 3, padding=1)), rows(), ["a transposed convolution"]),
        "a maximum with dilation": (nn.Sequential(nn.Conv1d(WIDTH, 8, 1), nn.MaxPool1d(2, 1, dilation=2), nn.Conv1d(8, 4, 1)), torch.randn(BATCH, WIDTH, 9), ["pooling with dilation"]),
        "PReLU of tokens": (Step(lambda own, x: own.act(x), act=nn.PReLU(TOKENS)), rows(), ["nn.PReLU of something else than the features"]),
        "means of pairs of tokens": (Step(lambda own, x: x[:, :4].reshape(len(x), 2, 2, -1).mean(2)), rows(), ["windows of tokens that are reduced without a pooling"]),
        "positions that are resized": (Step(lambda own, x: x + resized(own.table), table=parameter(3, WIDTH)), rows(), ["positions that are computed from table"]),
        "positions of zeros that are resized": (Step(lambda own, x: x + resized(own.table), table=nn.Parameter(torch.zeros(3, WIDTH))), rows(), ["positions that are computed from table"]),
        "positions that are computed": (Step(lambda own, x: x + own.table.tanh(), table=parameter(TOKENS, WIDTH)), rows(), ["positions that are computed from table"]),
        "a ReLU beside a Linear, at the end": (Function(lambda x: torch.cat([torch.relu(x), x], -1)), rows(), ["a concatenation of activation and input"]),
        "features in another order for each token": (Step(lambda own, x: (lambda a, b: torch.cat([torch.cat([a[:, :2], b[:, :2]], -1), torch.cat([b[:, 2:], a[:, 2:]], -1)], 1))(own.a(x), own.b(x)),
                                                          a=nn.Linear(WIDTH, 6), b=nn.Linear(WIDTH, 6)), rows(), ["a concatenation of features in another order for each token"]),
        "a Linear of some numbers of all tokens": (Step(lambda own, x: own.mix(torch.relu(x).flatten(1)[:, torch.arange(TOKENS * WIDTH) // 2 * 2]), mix=nn.Linear(TOKENS * WIDTH, WIDTH)), rows(),
                                                   ["a Linear of some numbers of all tokens"]),
        "a bias of one part of a gate": (Step(lambda own, x: own.back(torch.tanh(own.a(x)) * own.b(x)), a=nn.Linear(WIDTH, 20), b=nn.Linear(WIDTH, 20, bias=False), back=nn.Linear(20, WIDTH)),
                                         rows(), ["biases of a part of a gated network"]),
        "a BatchNorm of a part of a gate": (Step(lambda own, x: own.back(torch.tanh(own.norm(own.a(x).mT).mT) * own.b(x)), a=nn.Linear(WIDTH, 20), b=nn.Linear(WIDTH, 20), back=nn.Linear(20, WIDTH),
                                                 norm=nn.BatchNorm1d(20)), rows(), ["a BatchNorm of a part of a gated network"]),
        "a number that is trained, added to each feature": (Step(lambda own, x: torch.relu(x) + own.one, one=nn.Parameter(torch.ones(1))), rows(), ["a parameter of one number that is added"]),
        "a mask of reduced tokens": (Block(Reduced(strided, lambda own, s: s.masked_fill(torch.ones(TOKENS, 2, dtype=torch.bool).triu(1), -1e9), **strided_parts())), rows(),
                                     ["a mask"]),
        "scores without a softmax, as of gated attention units": (Step(lambda own, x: own.v(x) + (own.q(x) @ own.k(x).mT / 5).relu() ** 2 @ own.v(x), **{name: nn.Linear(WIDTH, WIDTH) for name in "qkv"}),
                                                                  rows(), ["of which none is a softmax of scores"]),
        "a value times itself": (Step(lambda own, x: x * x), rows(), ["a product of two values", "mul of [2, 5, 12], [2, 5, 12]"]),
        "a gate of one number for each token": (Step(lambda own, x: x * own.gate(x).sigmoid(), gate=nn.Linear(WIDTH, 1)), rows(), ["a product of two values"]),
        "a gate of a Linear that is its factor, too": (Step(lambda own, x: (lambda y: y * (own.gate(y).tanh() + x))(own.mix(x)), mix=nn.Linear(WIDTH, WIDTH), gate=nn.Linear(WIDTH, WIDTH)),
                                                       rows(), ["mix.weight is a tensor of two layers"]),
        "words times a gate of others": (Words(lambda own, ids: own.table(ids) * own.gate(ids).sigmoid(), gate=nn.Embedding(15, WIDTH)), words(), ["a product of two values"]),
        "a quotient of layers": (Step(lambda own, x: own.a(x) / (2 + own.b(x).tanh()), a=nn.Linear(WIDTH, WIDTH), b=nn.Linear(WIDTH, WIDTH)), rows(), ["a product of two values"]),
        "statistics over tokens as a gate": (Step(lambda own, x: x * (x.norm(dim=1, keepdim=True) / x.norm(dim=1, keepdim=True).mean(-1, keepdim=True))), rows(), ["norm of something else"]),
        "attention's weights without small ones": (Block(Attention(after=lambda weights: weights * (weights > 1e-5))), rows(), ["weights are changed behind their softmax"]),
        "attention's weights and a number": (Block(Attention(after=lambda weights: weights + 1e-3)), rows(), ["weights are changed behind their softmax"]),
        "a causal mask and a trained token behind the others": (Table(lambda x, token: torch.cat([x, token], 1), lambda x: x[:, -1], after=lambda own, x: own.causal(x), causal=Attention(lambda own, x, scores: scores + torch.full(scores.shape[-2:], -1e9).triu(1))),
                                                                torch.randn(BATCH, TOKENS), ["a trained token behind the others"]),
        "zeros between the others": (Step(lambda own, x: own.mix(torch.cat([x[:, :2], torch.zeros_like(x[:, :1]), x[:, 2:]], 1)).mean(1), mix=encoder()), rows(), ["constants between the numbers of tokens"]),
        "a trained token behind the others, and all of them": (Table(lambda x, token: torch.cat([x, token], 1), lambda x: x), torch.randn(BATCH, TOKENS), ["a trained token behind the others"]),
        "rotary positions and a trained token behind the others": (Table(lambda x, token: torch.cat([x, token], 1), lambda x: x[:, -1], after=lambda own, x: x + own.causal(x), numbers=TOKENS - 1,
                                                                         causal=Turned(turn=by_halves)), torch.randn(BATCH, TOKENS - 1), ["a trained token behind the others"]),
        "a BatchNorm of two Linears": (Step(lambda own, x: own.norm(own.a(x).mT).mT + torch.relu(own.norm(own.b(x).mT).mT), a=nn.Linear(WIDTH, WIDTH, bias=False), b=nn.Linear(WIDTH, WIDTH, bias=False),
                                            norm=nn.BatchNorm1d(WIDTH)), rows(), ["BatchNorm norm is that of two layers"]),
        "a BatchNorm of a Linear, and alone": (Step(lambda own, x: own.norm(torch.relu(own.norm(own.a(x).mT))).mT, a=nn.Linear(WIDTH, WIDTH), norm=nn.BatchNorm1d(WIDTH)), rows(),
                                               ["BatchNorm norm is that of two layers"]),
        "a norm times a parameter, the norm, and the parameter": (Step(lambda own, x: (lambda n: n * own.g * 2 + n + own.g)(F.layer_norm(x, (WIDTH,))), g=parameter(WIDTH)), rows(),
                                                                  ["g is a tensor of two layers"]),
        "a weight that is the bias, too": (Step(lambda own, x: F.layer_norm(x, (WIDTH,), own.g, own.g), g=parameter(WIDTH)), rows(), ["g is in several places of a layer"]),
        "a row of a matrix as its bias": (Step(lambda own, x: F.linear(torch.relu(x), own.m, own.m[0]), m=parameter(WIDTH, WIDTH)), rows(), ["m is in several places of a layer"]),
        "one norm of queries and keys": (Block(Turned(lambda own, y, part: own.a(y))), rows(), ["is in several places of a layer"]),
        "a softmax that is written out, of scores that end": (Block(Fused(lambda own, q, k, v, _: written_softmax((q @ k.mT / 2).clamp(-20, 20)) @ v)), rows(),
                                                              ["scores are changed by more than a factor"]),
        "numbers that are added to some places": (Step(lambda own, x: torch.scatter(torch.relu(x), 1, torch.zeros(len(x), 1, WIDTH, dtype=torch.long), x[:, :1], reduce="add")), rows(),
                                                  ["attune has no layer for this: scatter"]),
        "numbers that become integers in place": (Step(lambda own, x: torch.empty(x.shape, dtype=torch.int32).copy_(x).float()), rows(), ["attune has no layer for this: copy"]),
        "a trained mean and deviation that the output gets back": (Standardized(), rows(), ["a parameter that divides features, or is subtracted from them"]),
        "a trained token behind the one that is taken": (Table(lambda x, token: torch.cat([x, token], 1), lambda x: x[:, 0]), torch.randn(BATCH, TOKENS), ["a trained token behind the others"]),
        "trained tokens in front and behind": (Table(lambda x, token: torch.cat([token, torch.cat([x, token], 1)], 1), lambda x: x[:, -1]), torch.randn(BATCH, TOKENS), ["token"]),
        "lengths of tokens": (Step(lambda own, x: torch.cat([x[..., 1:], x.norm(dim=-1, keepdim=True)], -1)), rows(), ["norm of each token's features that is no part of a norm"]),
        "maxima beside a token": (nn.Sequential(nn.Linear(WIDTH, WIDTH), Function(lambda x: torch.cat([x[:, 0], x.amax(1)], -1)), nn.Linear(2 * WIDTH, 3)), rows(), ["features of several values side by side"]),
        "numbers that features divide": (Step(lambda own, x: torch.arange(1.0, WIDTH + 1) / (torch.sigmoid(x) + 1)), rows(), ["a product with a constant", "LayerScale"]),
        "narrow heads without an output projection": (Step(lambda own, x: own.o(torch.relu((own.q(x) @ own.k(x).mT).softmax(-1) @ own.v(x))), q=nn.Linear(WIDTH, 6), k=nn.Linear(WIDTH, 6),
                                                           v=nn.Linear(WIDTH, 6), o=nn.Linear(6, WIDTH)), rows(), ["heads are not as wide as its input"]),
        "heads that share keys in another order": (Step(lambda own, x: x + own.o(of_two(own, x, lambda y: y[:, [0, 1, 1, 0]])), q=nn.Linear(WIDTH, 16), k=nn.Linear(WIDTH, 8), v=nn.Linear(WIDTH, 8),
                                                        o=nn.Linear(16, WIDTH)), rows(), ["heads that share keys and values in another order than in groups"]),
        "a mask of -10": (*scores(causal(-10.0)), ["numbers that are added to scores"]),
        "a mask of rows of zeros": (Block(Attention(lambda own, x, s: s.masked_fill((x.abs().sum(-1) == 0)[:, None, None], -1e9))), rows(), ["attention"]),
        "a padding mask of queries": (Padded(queries), words(1), ["hides all keys from padding", "hides keys alone"]),
        "a padding mask of queries and keys": (Padded(lambda own, ids, s: queries(own, ids, hide_keys(-1e9)(own, ids, s))), words(1), ["hides all keys from padding"]),
        "a mask of two ids": (Padded(lambda own, ids, s: s.masked_fill((ids < 2)[:, None, None, :], -1e9)), words(), ["comparing them with one id"]),
        "a padding mask of one layer alone": (Padded(hide_keys(-1e9), seen=(0,)), words(), ["attention that hides padding beside attention that hides none"]),
        "a padding mask behind a convolution": (Padded(hide_keys(-1e9), before=nn.Conv1d(WIDTH, WIDTH, 3, padding=1)), words(), ["Conv1d before before attention that hides padding"]),
        "an output of all tokens of all samples": (Step(lambda own, x: x.flatten(0, 1)), rows(), ["whose first dimension is not the batch"]),
        "ids with an offset": (Words(lambda own, ids: own.table(ids + 2)), words().clamp(max=9), ["ids that are computed from the input"]),
        "ids with an offset for each token": (Words(lambda own, ids: own.table(ids + torch.arange(TOKENS))), words().clamp(max=9), ["ids that are computed from the input"]),
        "ids in floats": (Words(lambda own, ids: own.table(ids.long())), words().float(), ["a conversion to int64", "ids are integers in sample_input"]),
        "integers without an embedding": (nn.Sequential(Function(lambda x: x.float()), nn.Linear(WIDTH, 4)), torch.randint(0, 256, (BATCH, TOKENS, WIDTH)), ["integers that no embedding looks up"]),
        "numbers in half precision": (Step(lambda own, x: x.half().float()), rows(), ["a conversion to float16, which rounds"]),
        "dropout in evaluation": (Step(lambda own, x: F.dropout(x, 0.1)), rows(), ["differs from run to run", "training=self.training"]),
        "half precision": (Block(Attention()).half(), rows().half(), ["module.float()"]),
        "one block before and behind another one": (Step(lambda own, x: own.a(own.b(own.a(x))), a=encoder(), b=encoder()), rows(), ["a.self_attn.in_proj_weight is a tensor of two layers"]),
        "one block in a loop, and then in another one": (Step(lambda own, x: times(2, "a")(own, own.b(times(2, "a")(own, x))), a=encoder(), b=encoder()), rows(),
                                                         ["a.norm2.weight is a tensor of two layers", "repeats layers in a row"]),
        "one block in a loop, with a position of each step": (Step(lambda own, x: own.a(own.a(x + own.steps[0]) + own.steps[1]), a=encoder(), steps=parameter(2, WIDTH)), rows(),
                                                              ["a.norm1.weight is a tensor of two layers"]),
        "one block in a loop, whose first answer is added later": (Step(lambda own, x: (lambda y: y + own.a(own.a(y)))(own.a(x)), a=encoder()), rows(), ["a.norm1.weight is a tensor of two layers"]),
        "one layer 29 times": (Step(times(29, "mix"), mix=nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())), rows(), ["29 applications of one layer in a row"]),
        "one norm twice": (Step(lambda own, x: own.norm(own.mix(own.norm(x))), norm=nn.LayerNorm(WIDTH), mix=nn.Linear(WIDTH, WIDTH)), rows(), ["norm.weight is a tensor of two layers"]),
        "weight_norm": (nn.Sequential(nn.utils.weight_norm(nn.Linear(WIDTH, 3))), rows(), ["remove_weight_norm(model.0)"]),
        "pruning": (nn.Sequential(pruned(nn.Linear(WIDTH, 3))), rows(), ["prune.remove(model.0, 'weight')"]),
        "statistics of a sample": (nn.Sequential(Function(lambda x: x - x.mean(1, keepdim=True)), nn.Linear(WIDTH, 3)), rows(), ["no residual connection"]),
        "relative positions of zero": (*scores(lambda own, x, s: s + own.table, table=nn.Parameter(torch.zeros(HEADS, TOKENS, TOKENS))), ["attention.table", "takes part in forward"]),
        "biases of one table for all heads": (*with_biases(6, swin, 15, change=lambda own, s, bias: s + bias[:1]), ["biases that are not by distance", "attention.table"]),
        "biases that a function computes": (*with_biases(6, swin, 15, change=lambda own, s, bias: s + 16 * bias.sigmoid()), ["biases that are not by distance", "attention.table"]),
        "biases of offsets in another place of a grid": (*with_biases(6, lambda i, j: swin(i, j) if i < 5 else 14 - swin(i, j), 15), ["biases that are not by distance"]),
        "one table of biases for two layers": (OneTable(), rows(), ["table.weight is a tensor of two layers"]),
        "a temperature of another function": (with_temperature(lambda t, s: s * t.sigmoid()), rows(), ["attention.temperature", "takes part in forward"]),
        "a temperature with another limit": (with_temperature(lambda t, s: s * t.clamp(max=3).exp()), rows(), ["a temperature that is neither", "attention.temperature"]),
        "temperatures of two parameters": (*scores(lambda own, x, s: s * own.a * own.b, a=nn.Parameter(torch.ones(1)), b=nn.Parameter(torch.ones(1))), ["attention.", "takes part in forward"]),
        "a quotient by one parameter": (Step(lambda own, x: x + torch.relu(own.mix(x)) / own.alpha, alpha=nn.Parameter(torch.ones(1)), mix=nn.Linear(WIDTH, WIDTH)), rows(),
                                        ["alpha", "LayerScale"]),
        "one factor of two branches": (Step(lambda own, x: x + own.alpha * own.mix(x) + own.alpha * own.also(x), alpha=nn.Parameter(torch.ones(1)), mix=nn.Linear(WIDTH, WIDTH),
                                            also=nn.Linear(WIDTH, WIDTH)), rows(), ["alpha"]),
        "norms of heads with weights for each head": (Block(Turned(lambda own, y, part: F.normalize(y, dim=-1) * part.weight, make=lambda: Weights(HEADS, 4))), rows(),
                                                      ["other weights for each head"]),
        "groups with one class token": (Grid((lambda x: torch.cat([x[:, 0, :1].repeat_interleave(4, 0), x.flatten(0, 1)], 1), lambda z, shape: z[:, 1:].reshape(shape))), pixels(),
                                        ["tokens in another order, some of them several times"]),
        "a Fourier transform": (Step(lambda own, x: torch.view_as_real(torch.fft.fft(x))[..., 0]), rows(), ["complex numbers", "fft"]),
        "a step that is too small to be seen": (Step(lambda own, x: x + 1e-6 * torch.sin(100 * x)), rows(), ["sin of"]),
        "a leaky ReLU that is written out": (Step(lambda own, x: torch.where(x > 0, x, 0.01 * x)), rows(), ["attune has no leaky ReLU"]),
        "an ELU that ends elsewhere": (Step(lambda own, x: F.elu(x, 0.5)), rows(), ["elu of"]),
        "probabilities in the middle": (nn.Sequential(nn.Linear(WIDTH, 3), nn.Softmax(-1), nn.Linear(3, 3)), rows(), ["CrossEntropy takes logits"]),
        "probabilities of tokens": (nn.Sequential(nn.Linear(WIDTH, 3), nn.Softmax(1)), rows(), ["CrossEntropy takes logits"]),
        "probabilities of the input": (nn.Softmax(-1), rows(), ["no layer to export"]),
        "biases of half of the features, twice": (Step(lambda own, x: torch.relu(x) + own.beta.repeat(2), beta=parameter(WIDTH // 2)), rows(), ["beta is in several places of a layer"]),
        "positions of half of the features, twice": (Step(lambda own, x: x + own.table.repeat(1, 2), table=parameter(TOKENS, WIDTH // 2)), rows(), ["table is in several places of a layer"]),
        "a norm of 1 without its weights": (Step(lambda own, x: F.layer_norm(x, (WIDTH,)) * (1 - own.gamma), gamma=parameter(WIDTH)), rows(), ["computed from gamma"]),
        "a norm of weights and a number, times another": (Step(lambda own, x: F.layer_norm(x, (WIDTH,)) * ((1 + own.gamma) * 3), gamma=parameter(WIDTH)), rows(), ["computed from gamma"]),
        "one weight of two norms, around 0": (Step(lambda own, x: F.layer_norm(x, (WIDTH,)) * (1 + own.gamma) + F.layer_norm(own.inward(x), (WIDTH,)) * (1 + own.gamma), gamma=parameter(WIDTH)),
                                              rows(), ["is a tensor of two layers"]),
        "a sum of tokens times a softmax of a network": (Step(lambda own, x: (x * own.score(torch.tanh(own.mix(x))).softmax(1)).sum(1), score=nn.Linear(WIDTH, 1), mix=nn.Linear(WIDTH, WIDTH)), rows(),
                                                         ["weights of tokens that are not a softmax of a Linear of them; x.mean(1) is the nearest: sum of"]),
        "a sum of tokens times a softmax of others": (Step(lambda own, x: (x * own.score(x).flip(1).softmax(1)).sum(1), score=nn.Linear(WIDTH, 1)), rows(),
                                                      ["a softmax that is not attention's"]),
        "attention's weights": (Step(lambda own, x: x + own.mix(x, x, x)[1].mean(-1, keepdim=True), mix=nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)), rows(),
                                ["in mix"]),
        "three obstacles": (Step(lambda own, x: F.softplus(own.b(F.hardsigmoid(own.a(F.mish(x))))), a=nn.Linear(WIDTH, WIDTH), b=nn.Linear(WIDTH, WIDTH)), rows(),
                            ["3 steps of forward are in the way", "1. attune has no Mish", "2. attune has no hard sigmoid", "3. attune has no softplus"]),
        **refused_of_pytorch2(),
    }


def scaled_tied():
    """An embedding times a number, whose table is the head, too."""
    found = Words(lambda own, ids: own.mix(own.table(ids) * WIDTH ** 0.5), mix=nn.Linear(WIDTH, WIDTH))
    found.head = nn.Linear(WIDTH, 15, bias=False)
    found.head.weight = found.table.weight
    return found


def tied_last():
    """The logits of the last token by a head that is the embedding."""
    found = Words(lambda own, ids: own.mix(own.table(ids))[:, -1:], mix=nn.Linear(WIDTH, WIDTH))
    found.head = nn.Linear(WIDTH, 15, bias=False)
    found.head.weight = found.table.weight
    return found


def refused_of_pytorch2():
    cpu, heads = torch.ops.pytorch2._scaled_dot_product_flash_attention_for_cpu, torch.ops.pytorch2._native_multi_head_attention
    linears = {name: nn.Linear(WIDTH, WIDTH) for name in ("a", "b")}
    return {
        "dropout of attention in one operation": (Block(Fused(lambda own, q, k, v, _: cpu(q, k, v, 0.1)[0])), rows(), ["dropout is active in evaluation", "self.training"]),
        "positions that are added in one operation": (Block(Fused(lambda own, q, k, v, _: cpu(q, k, v, attn_mask=own.table)[0], table=parameter(TOKENS, TOKENS))), rows(),
                                                      ["takes part in forward", "attention.table"]),
        "the logarithms of attention's sums": (Block(Fused(lambda own, q, k, v, _: v * cpu(q, k, v)[1][..., None])), rows(), ["scaled_dot_product_flash_attention_for_cpu in attention"]),
        "PyTorch's whole attention as one operation": (Step(lambda own, x: heads(x, x, x, WIDTH, HEADS, own.a.weight, own.a.bias, own.b.weight, own.b.bias)[0], **linears), rows(),
                                                       ["attune has no layer for this", "native_multi_head_attention"]),
    }


def masked_once(own, x):
    """One layer of attention twice, causal the first time."""
    own.mix.change = causal(-1e9)
    x = own.mix(x)
    own.mix.change = None
    return own.mix(x)


def deceptive():
    """name -> (module, sample): each is refused, or exported right."""
    torch.manual_seed(13)
    cached, counted = {}, [0]

    def cache(own, x):
        cached.setdefault("mean", x.mean((0, 1)).detach())
        return x - cached["mean"]

    def count(own, x):
        counted[0] += 1
        return x * counted[0]

    def shuffled(own, x):
        x[:, [0, 1]] = x[:, [1, 0]]
        return x

    def swapped_heads(own, x):
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in (own.q(x), own.k(x), own.v(x)))
        return x + own.o(((q @ k.mT / 2).softmax(-1) @ v.flip(1)).transpose(1, 2).flatten(2))

    linears = {name: nn.Linear(WIDTH, WIDTH) for name in "qkvo"}
    angles = torch.arange(TOKENS)[:, None] * 1e4 ** (-torch.arange(2).double() / 2)
    buffer = torch.zeros(BATCH, TOKENS, WIDTH)

    def remembered(own, x):
        y = x + buffer
        buffer.copy_(x.detach())
        return y

    masked = lambda change: Block(Attention(change))  # noqa: E731
    return {
        "one norm twice, with two epsilons": (Step(lambda own, x: F.layer_norm(F.layer_norm(x, (WIDTH,), own.g, own.b, 1e-5), (WIDTH,), own.g, own.b, 0.3), g=parameter(WIDTH), b=parameter(WIDTH)), rows()),
        "one Linear twice, with a factor once": (Step(lambda own, x: own.mix(torch.relu(2 * own.mix(torch.relu(x)))), mix=nn.Linear(WIDTH, WIDTH)), rows()),
        "one attention twice, with a mask once": (Step(masked_once, mix=Attention()), rows()),
        "one layer twice, with two activations": (Step(lambda own, x: torch.tanh(own.mix(torch.relu(own.mix(x)))), mix=nn.Linear(WIDTH, WIDTH)), rows()),
        "attention to reduced tokens of another sample": (Block(Reduced(lambda own, x: strided(own, x).roll(1, 0), **strided_parts())), rows()),
        "attention to reduced tokens that are changed in place": (Block(Reduced(lambda own, x: (lambda y: (y.mul_(2), y)[1])(strided(own, x)), **strided_parts())), rows()),
        "attention to reduced tokens in another order": (Block(Reduced(lambda own, x: strided(own, x).flip(1), **strided_parts())), rows()),
        "attention to reduced tokens that are large": (Block(Reduced(lambda own, x: strided(own, x).clamp(-1e3, 1e3), **strided_parts())), rows()),
        "attention to reduced features": (Block(Reduced(lambda own, x: own.conv(x).roll(1, -1), conv=nn.Conv1d(TOKENS, 3, 1))), rows()),
        "a gate of the batch": (Step(lambda own, x: x * torch.sigmoid(own.gate(x.mean(0, keepdim=True))), gate=nn.Linear(WIDTH, WIDTH)), rows()),
        "a gate of other features": (Step(lambda own, x: x * own.gate(x).sigmoid().flip(-1), gate=nn.Linear(WIDTH, WIDTH)), rows()),
        "a gate of other tokens": (Step(lambda own, x: x * own.gate(x).sigmoid().flip(1), gate=nn.Linear(WIDTH, WIDTH)), rows()),
        "a gate of the tokens before": (Step(lambda own, x: x * own.gate(x).sigmoid().roll(1, 1), gate=nn.Linear(WIDTH, WIDTH)), rows()),
        "a gate of a mean that is far": (Step(lambda own, x: x * (x.mean(1, keepdim=True) < 50).float()), rows()),
        "a gate that is detached": (Step(lambda own, x: x * own.gate(x).sigmoid().detach(), gate=nn.Linear(WIDTH, WIDTH)), rows()),
        "a gate of tokens, taken for features": (Step(lambda own, x: x[:, :, :TOKENS] * own.gate(x).sigmoid()[:, :, :TOKENS].mT, gate=nn.Linear(WIDTH, WIDTH), outward=nn.Linear(TOKENS, 4)), rows()),
        "a gate that is changed in place": (Step(lambda own, x: (lambda y: (y * x, y.mul_(2))[0])(own.gate(x)), gate=nn.Linear(WIDTH, WIDTH)), rows()),
        "a mask of scores": (masked(lambda own, x, s: s.masked_fill(s < -40, -1e9)), rows()),
        "scores that are cut far away": (masked(lambda own, x, s: s.clamp(-1e4, 1e4)), rows()),
        "a cut far away": (Step(lambda own, x: torch.relu(x).clamp(max=1e3)), rows()),
        "a ReLU that ends far away": (Step(lambda own, x: torch.relu(x) - torch.relu(x - 100)), rows()),
        "a ReLU that ends far away by slopes": (Step(lambda own, x: torch.relu(x) - torch.relu(0.01 * x - 1) * 100), rows()),
        "a norm of rows that are not short": (nn.Sequential(Function(lambda x: x / x.norm(dim=-1, keepdim=True).clamp_min(5e-3)), nn.Linear(WIDTH, 4)), rows()),
        "a norm whose epsilon is beside the root": (nn.Sequential(Function(lambda x: x / (x.square().mean(-1, keepdim=True).sqrt() + 1e-4)), nn.Linear(WIDTH, 4)), rows()),
        "a ReLU that begins far away": (Step(lambda own, x: torch.where(x > -500, x, 0 * x).relu()), rows()),
        "a choice by the sign of a shifted value": (Step(lambda own, x: torch.where(x + 500 > 0, torch.relu(x), x)), rows()),
        "a choice far away": (Step(lambda own, x: torch.where(x > 500, x * 0, x)), rows()),
        "a number through NumPy": (Step(lambda own, x: x * float(numpy.abs(x.detach().numpy()).max())), rows()),
        "a mean through NumPy": (Step(lambda own, x: x - torch.from_numpy(x.detach().numpy().mean((0, 1)))), rows()),
        "a cache": (Step(cache), rows()),
        "a counter": (Step(count), rows()),
        "noise": (Step(lambda own, x: x + 0.1 * torch.randn_like(x)), rows()),
        "a choice by numbers": (Step(lambda own, x: torch.relu(x) if float(x.abs().max()) < 1e6 else x), rows()),
        "a shape by numbers": (Step(lambda own, x: x[:, :max(1, int((x[0, :, 0] > -1e6).sum()))].mean(1)), rows()),
        "tokens that change places in place": (Step(shuffled), rows()),
        "outputs that change places": (Function(lambda x: x.flip(1)), rows()),
        "outputs of a Linear that change places": (nn.Sequential(nn.Linear(WIDTH, 3), Function(lambda x: x.flip(1))), rows()),
        "features that change places": (Step(lambda own, x: x.flip(-1)), rows()),
        "values of other heads": (Step(swapped_heads, **linears), rows()),
        "statistics of the batch": (Step(lambda own, x: x - x.mean(0, keepdim=True)), rows()),
        "the first sample in all": (Step(lambda own, x: x + x[:1]), rows()),
        "the next sample": (Step(lambda own, x: x.roll(1, 0)), rows()),
        "tokens as the batch": (Step(lambda own, x: own.mix(x, x, x)[0], mix=nn.MultiheadAttention(WIDTH, HEADS)), rows()),
        "a gamma of ones that trains": (Step(lambda own, x: torch.relu(x) * own.gamma, gamma=nn.Parameter(torch.ones(WIDTH))), rows()),
        "a beta of zeros that trains": (Step(lambda own, x: torch.relu(x) + own.beta, beta=nn.Parameter(torch.zeros(WIDTH))), rows()),
        "a scale that differs a little by key": (masked(lambda own, x, s: s * (1 + 1e-3 * torch.arange(TOKENS))), rows()),
        "a mask of one head": (masked(lambda own, x, s: torch.cat([s[:, :1].masked_fill(torch.ones(TOKENS, TOKENS).triu(1).bool(), -1e9), s[:, 1:]], 1)), rows()),
        "a softmax of queries": (masked(lambda own, x, s: s.transpose(-1, -2)), rows()),
        "a mask of the next id": (Padded(lambda own, ids, s: hide_keys(-1e9)(own, ids.roll(1, 1), s)), words(1)),
        "a mask of the number of ids": (Padded(lambda own, ids, s: s.masked_fill(torch.arange(TOKENS) >= (ids != 0).sum(1)[:, None, None, None], -1e9)), words(1)),
        "a mask of ids like the first": (Padded(lambda own, ids, s: s.masked_fill((ids == ids[:, :1])[:, None, None, :], -1e9)), words(1)),
        "a mask of even tokens": (Padded(lambda own, ids, s: s.masked_fill(((ids == 0) & (torch.arange(TOKENS) % 2 == 0))[:, None, None, :], -1e9)), words(1)),
        "a mask of two neighbors": (Padded(lambda own, ids, s: s.masked_fill(((ids == 0) & (ids.roll(1, 1) == 0))[:, None, None, :], -1e9)), words(1)),
        "a mask of -3": (Padded(hide_keys(-3.0)), words(1)),
        "a mask that favors other keys": (Padded(lambda own, ids, s: hide_keys(-1e9)(own, ids, s) + 1e-3 * (ids == 0).roll(1, 1)[:, None, None, :]), words(1)),
        "a mask of one head's padding": (Padded(lambda own, ids, s: torch.cat([hide_keys(-1e9)(own, ids, s[:, :1]), s[:, 1:]], 1)), words(1)),
        "a mask of an id that no sample has": (Padded(lambda own, ids, s: s.masked_fill(((ids == 0) | (ids == 14))[:, None, None, :], -1e9)), words(1).clamp(max=9)),
        "a mask of a product of ids": (Padded(lambda own, ids, s: s.masked_fill((ids * (ids - 14) == 0)[:, None, None, :], -1e9)), words(1).clamp(max=9)),
        "a mask that is not to be": (Padded(lambda own, ids, s: s.masked_fill((ids != 0)[:, None, None, :], -1e9)), words()),
        "scores that vanish at padding": (Padded(lambda own, ids, s: s * (ids != 0)[:, None, None, :]), words(1)),
        "scores times a mask, and hidden": (Padded(lambda own, ids, s: hide_keys(-1e9)(own, ids, s) * (1 + (ids == 0).float().mean(1)[:, None, None, None])), words(1)),
        "a mask of ids by NumPy": (Padded(lambda own, ids, s: s.masked_fill(torch.from_numpy(ids.numpy() == 0)[:, None, None, :], -1e9)), words(1)),
        "weights that are hidden behind the softmax": (Words(lambda own, ids: own.mix(own.table(ids)) * (ids != 0)[..., None], mix=Attention()), words(1)),
        "padding that hides itself in the values": (Padded(hide_keys(-1e9), lambda own, ids, x: (x * (ids != 0)[..., None]).sum(1)), words(1)),
        "a mean of tokens that divides by one more": (Padded(hide_keys(-1e9), lambda own, ids, x: (x * (ids != 0)[..., None]).sum(1) / ((ids != 0).sum(1, keepdim=True) + 1)), words(1)),
        "a mean of tokens that divides by all": (Padded(hide_keys(-1e9), lambda own, ids, x: (x * (ids != 0)[..., None]).sum(1) / (ids + 99).clamp(max=1).sum(1, keepdim=True)), words(1)),
        "a mean of tokens of another padding": (Padded(hide_keys(-1e9), lambda own, ids, x: (x * (ids != 3)[..., None]).sum(1) / (ids != 3).sum(1, keepdim=True)), words(1)),
        "a mean of tokens beside attention to padding": (Padded(None, mean_of_words, seen=(0, 1)), words(1)),
        "a mean of the tokens before": (Padded(hide_keys(-1e9), lambda own, ids, x: (x.roll(1, 1) * (ids != 0)[..., None]).sum(1) / (ids != 0).sum(1, keepdim=True)), words(1)),
        "a mean of tokens by their features' mask": (Padded(hide_keys(-1e9), lambda own, ids, x: (x * (ids != 0)[..., None]).sum(1) / (x != 0).sum(1)), words(1)),
        "ids that choose a factor": (Words(lambda own, ids: own.table(ids) * (ids != 0)[..., None]), words(1)),
        "positions of ids": (Words(lambda own, ids: own.table(ids) + own.places((ids != 0).cumsum(1)), places=nn.Embedding(9, WIDTH)), words(1)),
        "the row of the largest id": (Words(lambda own, ids: own.table(ids)[torch.arange(len(ids)), ids.argmax(1)]), words(1)),
        "an eighth norm that is a mean": (Step(lambda own, x: x / (x.pow(8).mean(-1, keepdim=True) + 1e-5) ** 0.125), rows()),
        "a norm whose statistics are half": (Step(lambda own, x: (x - x[..., :6].mean(-1, keepdim=True)) / x[..., :6].std(-1, keepdim=True)), rows()),
        "tokens and features that change places in one of two": (Step(lambda own, x: x + own.mix(x).mT, mix=nn.Linear(WIDTH, WIDTH)), torch.randn(BATCH, WIDTH, WIDTH)),
        "a transposed half": (Step(lambda own, x: x + torch.cat([x[:, :6].mT, x[:, 6:].mT], 2)), torch.randn(BATCH, WIDTH, WIDTH)),
        "tokens that are copied to other places": (Step(lambda own, x: torch.zeros_like(x).index_copy(1, torch.arange(TOKENS).flip(0), torch.relu(x))), rows()),
        "tokens that are copied over others": (Step(lambda own, x: x.index_copy(1, torch.tensor([0, 0]), torch.relu(x)[:, 1:3])), rows()),
        "a Linear of windows with a gap": (Step(lambda own, x: own.mix(torch.cat([torch.relu(x)[:, :3], torch.relu(x)[:, 2:]], 2)), mix=nn.Linear(2 * WIDTH, WIDTH)), rows()),
        "a Linear of windows of which one is another": (Step(lambda own, x: own.mix(torch.relu(x).unfold(1, 2, 1)[:, [0, 1, 2, 2]].flatten(2)), mix=nn.Linear(2 * WIDTH, WIDTH)), rows()),
        "a Linear of windows without the last": (Step(lambda own, x: own.mix(torch.relu(x).unfold(1, 2, 1)[:, :3].flatten(2)), mix=nn.Linear(2 * WIDTH, WIDTH)), rows()),
        "a Linear of windows from the second token on": (Step(lambda own, x: own.mix(torch.relu(x)[:, 1:].unfold(1, 2, 1).flatten(2)), mix=nn.Linear(2 * WIDTH, WIDTH)), rows()),
        "the second token of another order": (Step(lambda own, x: torch.relu(x).flip(1)[:, 1]), rows()),
        "two tokens in the middle": (Step(lambda own, x: torch.relu(x)[:, 1:3]), rows()),
        "the second and the fourth token": (Step(lambda own, x: torch.relu(x)[:, [1, 3]]), rows()),
        "the second token of other features": (Step(lambda own, x: torch.relu(x).roll(1, 2)[:, 1]), rows()),
        "rotated values": (Step(lambda own, x: x.roll(1, 1)), rows()),
        "queries that turn backwards, and keys that do not": (Block(Turned(lambda own, y, part: by_complex(-angles if part is own.a else angles)(y))), rows()),
        "rotary positions of which half turns backwards": (Block(Turned(turn=by_complex(angles * torch.tensor([1, -1])))), rows()),
        "norms of heads before rotary positions that turn backwards": (Block(Turned(root_mean_square, by_complex(-angles))), rows()),
        "norms of heads behind rotary positions": (Block(Turned(root_mean_square, by_halves, first=True)), rows()),
        "norms of heads that are cut far away": (Block(Turned(lambda own, y, part: part(y).clamp(-300, 300))), rows()),
        "norms of heads and of all features": (Block(Turned(lambda own, y, part: part(y) * torch.rsqrt(y.pow(2).mean((-1, -2), keepdim=True) + 1e-6))), rows()),
        "norms of heads whose weights are a mean": (Block(Turned(lambda own, y, part: part(y) + y.mean(-1, keepdim=True))), rows()),
        "norms of heads by several epsilons": (Block(Turned(lambda own, y, part: F.layer_norm(y, (4,), part.weight, part.bias, 1e-2 if part is own.a else 1e-6))), rows()),
        "norms of queries alone": (Block(Turned(lambda own, y, part: part(y) if part is own.a else y)), rows()),
        "complex numbers of other lengths": (Block(Turned(turn=by_complex(angles * 1.1))), rows()),
        "complex positions of one base a head": (Block(Turned(turn=lambda y: torch.cat([by_complex(angles)(y[:, :, :1]), by_complex(2 * angles)(y[:, :, 1:])], 2))), rows()),
        "complex numbers that grow": (Block(Turned(turn=lambda y: by_complex(angles)(y) * (1 + 0.01 * torch.arange(TOKENS)[:, None, None]))), rows()),
        "a forecast with two epsilons": (Forecast(back=lambda own, y, x: y * torch.sqrt(torch.var(x, 1, keepdim=True, unbiased=False) + 1e-6) + own.mean(x)), rows()),
        "a forecast by unbiased variances": (Forecast(norm=lambda own, x: (x - own.mean(x)) / biased(x), back=lambda own, y, x: y * biased(x) + own.mean(x)), rows()),
        "a forecast that gets an unbiased deviation": (Forecast(back=lambda own, y, x: y * biased(x) + own.mean(x)), rows()),
        "a forecast without its mean": (Forecast(back=lambda own, y, x: y * own.deviation(x)), rows()),
        "a forecast without its last step that gets the mean": (Forecast(norm=without_last), rows()),
        "a forecast without its step before the last": (Forecast(norm=lambda own, x: (x - x[:, -2:-1]) / own.deviation(x), back=lambda own, y, x: y * own.deviation(x) + x[:, -2:-1]), rows()),
        "a forecast without its last step, by its own deviation": (Forecast(norm=lambda own, x: (x - x[:, -1:]) / ((x - x[:, -1:]).square().mean(1, keepdim=True) + 1e-5).sqrt(),
                                                                            back=with_last), rows()),
        "a forecast without its last step, whose factor stays": (Forecast(True, norm=without_last, back=lambda own, y, x: y * own.deviation(x) + x[:, -1:]), rows()),
        "a temperature of the input": (masked(lambda own, x, s: s * x.mean((1, 2), keepdim=True)[..., None].exp()), rows()),
        "a temperature that ends far away": (with_temperature(lambda t, s: s * t.exp().clamp(max=1e6)), rows()),
        "a temperature that begins far away": (with_temperature(lambda t, s: s * t.clamp(-50, math.log(100)).exp()), rows()),
        "a temperature that ends near": (with_temperature(lambda t, s: s * t.clamp(max=math.log(90)).exp()), rows()),
        "a temperature through NumPy": (with_temperature(lambda t, s: s * float(numpy.exp(t.detach().numpy()).mean())), rows()),
        "a temperature of another head": (with_temperature(lambda t, s: s * t.flip(0)), rows()),
        "a temperature of keys": (with_temperature(lambda t, s: s * t, shape=(TOKENS,)), rows()),
        "a temperature of two heads": (with_temperature(lambda t, s: s * torch.cat([t, t[:1]]), shape=(HEADS - 1, 1, 1)), rows()),
        "a temperature applied after the mask": (with_temperature(lambda t, s: (s - 1e9 * torch.ones(TOKENS, TOKENS).triu(1)) * t), rows()),
        "a temperature of the weights": (Block(Attention(lambda own, x, s: (s.softmax(-1) * own.query.bias[0].exp()).log())), rows()),
        "a temperature and a bias of scores": (with_temperature(lambda t, s: s * t + t), rows()),
        "cosines of long queries alone": (Block(Cosines(lambda own, s: s * own.scale, eps=0.01, scale=nn.Parameter(torch.rand(HEADS, 1, 1)))), rows()),
        "a mask of the diagonal beside": (masked(lambda own, x, s: s.masked_fill(torch.eye(TOKENS).roll(1, 1).bool(), -1e9)), rows()),
        "an input with some numbers of zero": (nn.Sequential(Function(lambda x: torch.cat([x[..., :3], x[..., 3:] * 0], -1)), nn.Linear(WIDTH, 3)), rows()),
        "an input with other numbers at its edge": (nn.Sequential(Function(lambda x: F.pad(x, (1, -1), value=2.0)), nn.Linear(WIDTH, 3)), rows()),
        "an input that loses its first numbers": (nn.Sequential(Function(lambda x: F.pad(x, (1, -1))), nn.Linear(WIDTH, 3)), rows()),
        "a mask of a part of the diagonal": (masked(lambda own, x, s: s.masked_fill(torch.diag(torch.arange(TOKENS) > 1), -1e9)), rows()),
        "a forecast with half of the steps' mean": (Forecast(norm=lambda own, x: (x - x[:, :3].mean(1, keepdim=True)) / own.deviation(x)), rows()),
        "a forecast by statistics of features": (Forecast(norm=lambda own, x: (x - x.mean(2, keepdim=True)) / (x.var(2, keepdim=True, unbiased=False) + 1e-5).sqrt()), rows()),
        "an input that is normalized by unbiased variances": (Forecast(norm=lambda own, x: (x - own.mean(x)) / biased(x), back=lambda own, y, x: y), rows()),
        "an input that is normalized twice": (Forecast(norm=lambda own, x: Forecast.normalized(own, Forecast.normalized(own, x)), back=lambda own, y, x: y), rows()),
        "an input with a factor for another feature": (Forecast(True, norm=lambda own, x: (x - own.mean(x)) / own.deviation(x) * own.w.flip(0) + own.b, back=lambda own, y, x: y), rows()),
        "an input whose deviations end": (Forecast(norm=lambda own, x: (x - own.mean(x)) / own.deviation(x).clamp_min(3.2e-3), back=lambda own, y, x: y), rows()),
        "a forecast by statistics of the batch": (Forecast(norm=lambda own, x: (x - x.mean((0, 1))) / (x.var((0, 1), unbiased=False) + 1e-5).sqrt()), rows()),
        "a forecast by statistics of a sample": (Forecast(norm=lambda own, x: (x - x.mean((1, 2), keepdim=True)) / (x.var((1, 2), keepdim=True, unbiased=False) + 1e-5).sqrt()), rows()),
        "a forecast whose deviations end": (Forecast(back=lambda own, y, x: y * own.deviation(x).clamp_min(3.2e-3) + own.mean(x)), rows()),
        "a forecast that sees the deviation": (Forecast(inside=lambda own, x, n: own.body(n + own.deviation(x))), rows()),
        "a forecast that sees the mean": (Forecast(inside=lambda own, x, n: own.body(n) + own.mean(x)), rows()),
        "a forecast that sees the input": (Forecast(inside=lambda own, x, n: own.body(n + x)), rows()),
        "a forecast whose factor stays": (Forecast(True, back=lambda own, y, x: y * own.deviation(x) + own.mean(x)), rows()),
        "a forecast whose factor is that of the deviation": (Forecast(True, back=lambda own, y, x: (y - own.b) / (own.w + 1e-10) * own.deviation(x) * own.w + own.mean(x)), rows()),
        "a forecast of features that change places": (Forecast(body=Over(nn.Linear(TOKENS, 4)), inside=lambda own, x, n: own.body(n).flip(2)), rows()),
        "a sum of some tokens times a softmax of all": (Step(lambda own, x: (x * own.score(x).softmax(1))[:, 1:].sum(1), score=nn.Linear(WIDTH, 1)), rows()),
        "a sum of features times a softmax of tokens": (Step(lambda own, x: (x * own.score(x).softmax(1)).sum(-1, keepdim=True) + x, score=nn.Linear(WIDTH, 1)), rows()),
        "half of a sum of tokens times their softmax": (Step(lambda own, x: (x * own.score(x).softmax(1) * 0.5).sum(1), score=nn.Linear(WIDTH, 1)), rows()),
        "half of attention's weights over tokens": (Step(lambda own, x: ((own.score(x).softmax(1) / 2).mT @ x).squeeze(1), score=nn.Linear(WIDTH, 1)), rows()),
        "a trained token behind others, which are tokens of other models, too": (Table(lambda x, token: torch.cat([x, token], 1), lambda x: x[:, -1], after=lambda own, x: x + torch.cat([x[:, 1:], x[:, :1]], 1)), torch.randn(BATCH, TOKENS)),
        "a GroupNorm over features": (Step(lambda own, x: own.norm(x), norm=nn.GroupNorm(1, TOKENS)), rows()),
        "a dilated convolution with zeros behind": (Step(lambda own, x: own.filter(F.pad(x.mT, (0, 4))).mT, filter=nn.Conv1d(WIDTH, WIDTH, 3, dilation=2)), rows()),
        "a sum with one branch of another sample": (Step(lambda own, x: own.a(x) + own.b(x.roll(1, 0)), a=nn.Linear(WIDTH, WIDTH), b=nn.Linear(WIDTH, WIDTH)), rows()),
        "a sum with one branch of other tokens": (Step(lambda own, x: own.a(x) + own.b(x.flip(1)), a=nn.Linear(WIDTH, WIDTH), b=nn.Linear(WIDTH, WIDTH)), rows()),
        "a difference of one module twice": (Step(lambda own, x: own.a(torch.relu(x)) - own.a(x), a=nn.Linear(WIDTH, WIDTH)), rows()),
        "a difference with a factor": (Step(lambda own, x: torch.sub(own.a(x), torch.relu(x), alpha=2), a=nn.Linear(WIDTH, WIDTH)), rows()),
        "a difference from other tokens": (Step(lambda own, x: torch.relu(x) - x.roll(1, 1)), rows()),
        "averages around the next pixel": (nn.Sequential(nn.Conv2d(2, 4, 1), Function(lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False).roll(1, 2)), nn.Conv2d(4, 3, 1), nn.Flatten()),
                                           torch.randn(BATCH, 2, 6, 5)),
        "averages around pixels of another channel": (nn.Sequential(nn.Conv2d(2, 4, 1), Function(lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False).flip(1)), nn.Conv2d(4, 3, 1), nn.Flatten()),
                                                      torch.randn(BATCH, 2, 6, 5)),
        "probabilities times a number": (nn.Sequential(nn.Linear(WIDTH, 3), nn.Softmax(-1), Function(lambda x: x * 0.5)), rows()),
        "probabilities of other features": (nn.Sequential(nn.Linear(WIDTH, 4), Function(lambda x: torch.cat([x[..., :2].softmax(-1), x[..., 2:].softmax(-1)], -1))), rows()),
        "probabilities by their square": (nn.Sequential(nn.Linear(WIDTH, 3), Function(lambda x: (x * x).softmax(-1))), rows()),
        "factors of tokens and features": (Step(lambda own, x: torch.relu(x) * own.table, table=parameter(TOKENS, WIDTH)), rows()),
        "factors of tokens that are turned": (Step(lambda own, x: torch.relu(x) * own.gamma[:, None].flip(0), gamma=parameter(TOKENS)), rows()),
        "biases of tokens with a factor": (Step(lambda own, x: torch.add(torch.relu(x), own.beta[:, None], alpha=2), beta=parameter(TOKENS)), rows()),
        "factors and biases in one operation, times 2": (Step(lambda own, x: torch.addcmul(own.beta, own.gamma, torch.relu(x), value=2), gamma=parameter(WIDTH), beta=parameter(WIDTH)), rows()),
        "a sum with a factor of a branch": (Step(lambda own, x: torch.add(own.a(x), torch.relu(own.b(x)), alpha=2), a=nn.Linear(WIDTH, WIDTH), b=nn.Linear(WIDTH, WIDTH)), rows()),
        "a sum of a branch of a branch": (Step(lambda own, x: own.b(torch.relu(own.a(x))) + torch.relu(own.a(x)) + own.c(x), **{key: nn.Linear(WIDTH, WIDTH) for key in "abc"}), rows()),
        "a sum of one module twice": (Step(lambda own, x: own.a(torch.relu(own.b(x))) + own.a(torch.tanh(own.b(x))), a=nn.Linear(WIDTH, WIDTH), b=nn.Linear(WIDTH, WIDTH)), rows()),
        "the forecast of the first variable": (Variables(take=lambda own, y: y[..., 0]), series()),
        "the forecasts of the first two variables": (Variables(take=lambda own, y: y[..., :2]), series()),
        "the forecast of the second variable": (Variables(take=lambda own, y: y[..., 1]), series()),
        "positions of each variable": (Variables(lambda own, z: z + own.more.repeat(len(z) // 3, 1, 1), more=parameter(3, 1, WIDTH)), series()),
        "variables that see the next one's keys": (Variables(lambda own, z: z + own.other(z, *[z.unflatten(0, (-1, 3)).roll(1, 1).flatten(0, 1)] * 2)[0], other=nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)), series()),
        "variables with one mean": (Variables(lambda own, z: z - z.unflatten(0, (-1, 3)).mean(1, keepdim=True).expand(-1, 3, -1, -1).flatten(0, 1)), series()),
        "variables of which one is turned": (Variables(lambda own, z: torch.cat([z[::3].flip(1), z[1::3], z[2::3]], 1).unflatten(1, (3, -1)).flatten(0, 1)), series()),
        "variables before samples": (Variables(lambda own, z: z.unflatten(0, (3, -1)).transpose(0, 1).flatten(0, 1)), series()),
        "variables of which one has another Linear": (Variables(lambda own, z: torch.stack([own.a(z[::3]), own.b(z[1::3]), own.b(z[2::3])], 1).flatten(0, 1), a=nn.Linear(WIDTH, WIDTH), b=nn.Linear(WIDTH, WIDTH)), series()),
        "patches over the end, of another token": (Variables(revin=True, overlapping=True, change=lambda own, z: z[:, [0, 1, 2, 3, 3]]), series()),
        "patches over the end, of its mirror": (Step(lambda own, x: own.mix(F.pad(torch.relu(x).mT, (0, 1), mode="reflect").unfold(2, 2, 1).transpose(1, 2).flatten(2)), mix=nn.Linear(2 * WIDTH, WIDTH)), rows()),
        "windows that are shifted": (Grid((lambda x: WINDOWS[0](x.roll((1, 1), (1, 2))), lambda z, shape: WINDOWS[1](z, shape).roll((-1, -1), (1, 2)))), pixels()),
        "windows that come back elsewhere": (Grid((WINDOWS[0], lambda z, shape: WINDOWS[1](z, shape).flip(1))), pixels()),
        "windows that come back as rows": (Grid((WINDOWS[0], lambda z, shape: z.reshape(shape))), pixels()),
        "rows of several samples": (Grid((lambda x: x.transpose(0, 1).flatten(0, 1).unflatten(0, (2, -1)).transpose(0, 1).flatten(0, 1), ALONG_ROWS[1])), pixels()),
        "columns of two rows each": (Grid((lambda x: ALONG_COLUMNS[0](x).flatten(0, 1).unflatten(0, (-1, 8)), lambda z, shape: ALONG_COLUMNS[1](z.flatten(0, 1), shape))), pixels()),
        "two values side by side, of other tokens": (Step(lambda own, x: own.mix(torch.cat([torch.relu(own.a(x)), torch.tanh(own.b(x)).roll(1, 1)], -1)), a=nn.Linear(WIDTH, 3),
                                                          b=nn.Linear(WIDTH, 5), mix=nn.Linear(8, WIDTH)), rows()),
        "two values side by side, one of them twice": (Step(lambda own, x: own.mix(torch.cat([torch.relu(x), torch.tanh(x), torch.relu(x)], -1)), mix=nn.Linear(3 * WIDTH, WIDTH)), rows()),
        "tokens of a grid of which a part changes places": (Step(lambda own, x: torch.cat([torch.relu(x)[:, :4].unflatten(1, (2, 2)).transpose(1, 2).flatten(1, 2), torch.relu(x)[:, 4:]], 1)),
                                                            torch.randn(BATCH, 6, WIDTH)),
        "a buffer of the last call": (Step(remembered), rows()),
        "a view that is written late": (Step(late_write), rows()),
        "a buffer that forward writes": (Step(lambda own, x: x + own.state.copy_(x.detach().mean((0, 1))), state=torch.zeros(WIDTH)), rows()),
    }


def at_start():
    """name -> (module, sample): parameters that are zero or one, as training begins; each is refused, or comes back as the board has it."""
    torch.manual_seed(17)
    zeros, ones = (lambda *shape: nn.Parameter(torch.zeros(*shape))), (lambda *shape: nn.Parameter(torch.ones(*shape)))
    normal = lambda x: (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()  # noqa: E731
    score = lambda: zeroed(nn.Linear(WIDTH, 1))  # noqa: E731
    queries = lambda change: with_parts(Block(Attending(queries=change)), b=zeros(WIDTH))  # noqa: E731
    of_ones = Turned(lambda own, y, part: F.layer_norm(y, (4,)) * part.weight + part.bias)
    of_zeros = Turned(root_mean_square, by_halves)
    for own in (*of_ones.a.parameters(), *of_ones.b.parameters()):
        nn.init.ones_(own)
    return {
        "zeros times a number": (Step(lambda own, x: torch.relu(x) + own.b * 0.1, b=zeros(WIDTH)), rows()),
        "positions of zeros times a number": (Step(lambda own, x: x + own.b * 0.1, b=zeros(TOKENS, WIDTH)), rows()),
        "zeros times a mask": (Step(lambda own, x: torch.relu(x) + own.b * (torch.arange(WIDTH) > 3), b=zeros(WIDTH)), rows()),
        "zeros that are subtracted from zeros": (Step(lambda own, x: torch.relu(x) + (torch.zeros(WIDTH) - own.b), b=zeros(WIDTH)), rows()),
        "zeros that are added with a factor": (Step(lambda own, x: torch.relu(x) + torch.add(torch.zeros(WIDTH), own.b, alpha=2), b=zeros(WIDTH)), rows()),
        "one over ones": (Step(lambda own, x: torch.relu(x) * (torch.ones(WIDTH) / own.b), b=ones(WIDTH)), rows()),
        "a weight of zeros over the number of its row": (Step(lambda own, x: F.linear(torch.relu(x), own.w / torch.arange(1, WIDTH + 1)[:, None]), w=zeros(WIDTH, WIDTH)), rows()),
        "a norm whose weight and bias are ones": (Step(lambda own, x: normal(x) * own.g + own.b, g=ones(WIDTH), b=ones(WIDTH)), rows()),
        "a root mean square norm whose weight and bias are ones": (Step(lambda own, x: own.norm(x) + own.b, norm=RootMeanSquare(), b=ones(WIDTH)), rows()),
        "a norm times ones, and the norm": (Step(lambda own, x: (lambda n: n * own.g + n)(normal(x)), g=ones(WIDTH)), rows()),
        "a norm, a bias of ones, and one": (Step(lambda own, x: normal(x) + own.b + 1, b=ones(WIDTH)), rows()),
        "a norm less zeros": (Step(lambda own, x: normal(x) * own.g - own.b, g=ones(WIDTH), b=zeros(WIDTH)), rows()),
        "a norm with a bias before its factor": (Step(lambda own, x: (normal(x) + own.b) * own.g, g=ones(WIDTH), b=zeros(WIDTH)), rows()),
        "a norm times the square of ones": (Step(lambda own, x: normal(x) * own.g ** 2, g=ones(WIDTH)), rows()),
        "a norm times zeros": (Step(lambda own, x: normal(x) * own.g + own.b, g=zeros(WIDTH), b=zeros(WIDTH)), rows()),
        "queries with zeros by a factor": (queries(lambda own, q: torch.add(q, own.b, alpha=2)), rows()),
        "queries times a number, with zeros": (queries(lambda own, q: q * 0.5 + own.b), rows()),
        "norms of heads whose weights and biases are ones": (Block(of_ones), rows()),
        "norms of heads times zeros before rotary positions": (Block(zeroed(of_zeros, of_zeros.a, of_zeros.b)), rows()),
        "rotary positions before zeros that are added": (Block(Shifted()), rows()),
        "a sum of tokens times a softmax of other tokens": (Step(lambda own, x: (own.score(x).softmax(1).flip(1) * x).sum(1), score=score()), rows()),
        "a sum of tokens times a softmax of one row of other tokens": (Step(lambda own, x: (own.score(x).squeeze(-1).softmax(1).flip(1)[..., None] * x).sum(1), score=score()), rows()),
        "a sum of tokens in another order times their softmax": (Step(lambda own, x: (own.score(x).softmax(1) * x.flip(1)).sum(1), score=score()), rows()),
        "weights of zeros of all queries, keys and values": (Block(zeroed(Attention())), rows()),
        "a spatial gating unit that begins as 1": (Step(lambda own, x: x + spatial_gate(own, x), **spatial_parts(over=zeros(TOKENS, TOKENS, 1), beyond=ones(TOKENS))), rows()),
        "a forecast whose factor and bias are ones": (filled(Forecast(True), 1), rows()),
        "zeros of each sample": (Step(lambda own, x: x + own.b.view(BATCH, 1, WIDTH), b=zeros(BATCH, WIDTH)), rows()),
        "a token of zeros for each sample": (Step(lambda own, x: own.mix(torch.cat([own.b.view(BATCH, 1, WIDTH), x], 1)), b=zeros(BATCH, WIDTH), mix=encoder()), rows()),
        "a leak between variables that begins as 0": (Variables(lambda own, z: z + own.leak * z.unflatten(0, (-1, 3)).mean(1, keepdim=True).expand(-1, 3, -1, -1).flatten(0, 1), leak=zeros(1)), series()),
    }


class Standardized(nn.Module):
    """A model of features by their mean and deviation, whose output gets both back."""

    def __init__(self, trained=True):
        super().__init__()
        for name, numbers in (("mean", torch.randn(WIDTH)), ("deviation", torch.rand(WIDTH) + 0.5)):
            self.register_parameter(name, nn.Parameter(numbers)) if trained else self.register_buffer(name, numbers)
        self.net = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, x):
        return self.net((x - self.mean) / self.deviation) * self.deviation + self.mean


class Shifted(Turned):
    """Rotary positions, and zeros that are added to what they turn."""

    def __init__(self):
        super().__init__()
        self.beta = nn.Parameter(torch.zeros(4))
        self.turn = lambda y: by_halves(y) + self.beta


class RootMeanSquare(nn.Module):
    def __init__(self):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.gamma


def zeroed(module, *parts):
    """A module with parameters of zeros, or with some parts of zeros."""
    for part in parts or (module,):
        for own in part.parameters():
            nn.init.zeros_(own)
    return module


def filled(forecast, number):
    """A Forecast whose factor and bias are a number."""
    nn.init.constant_(forecast.w, number), nn.init.constant_(forecast.b, number)
    return forecast


def late_write(own, x):
    y = torch.relu(x)
    z = y * 1
    y[:, 0].mul_(3)
    return z + y


def with_parts(block, **parts):
    for name, part in parts.items():
        setattr(block.attention, name, part)
    return block


def pruned(layer):
    import torch.nn.utils.prune
    return torch.nn.utils.prune.l1_unstructured(layer, "weight", 0.5)
