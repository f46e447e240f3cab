"""The cases of a whole model, trained: losses, logits, gradients of the first step, parameters at the end."""
import torch
from torch import nn
from torch.nn import functional as F

from transformer_cases import LEAST_WIDTH, draw_parameters


class Classifier(nn.Module):
    """head(mean over tokens of norm(encoder(embed(x) + pos)))."""

    def __init__(self, features, length, width, heads, d_ff, layers, classes, act, norm_first, dtype):
        super().__init__()
        self.embed = nn.Linear(features, width, dtype=dtype)
        self.pos = nn.Parameter(torch.zeros(length, width, dtype=dtype))
        layer = nn.TransformerEncoderLayer(width, heads, d_ff, 0.0, act, batch_first=True, norm_first=norm_first,
                                           dtype=dtype)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.norm = nn.LayerNorm(width, dtype=dtype)
        self.head = nn.Linear(width, classes, dtype=dtype)

    def forward(self, x):
        return self.head(self.norm(self.encoder(self.embed(x) + self.pos)).mean(1))


def train(cases, name, batch=4, length=5, features=3, heads=2, head_dim=4, d_ff=12, layers=1, classes=3, act="gelu",
          norm_first=True, steps=8, lr=1e-2, betas=(0.9, 0.999), weight_decay=0.01):
    """losses[s] is that before step s + 1; AdamW on the mean cross-entropy of one batch.

    The key's bias has a gradient of rounding noise, of which AdamW makes steps: it is not to be compared.
    """
    draw = cases.draw(name)
    if cases.random_shapes:
        batch, length, features = draw.integer(1, 6), draw.integer(2, 8), draw.integer(1, 9)
        heads = draw.choice([1, 2, 3, 4])
        head_dim, d_ff = draw.integer(-(-LEAST_WIDTH // heads), 9), draw.integer(3, 24)
        classes, steps = draw.integer(2, 9), draw.integer(1, 12)
    width = heads * head_dim
    x = draw.normal(batch, length, features)
    target = torch.tensor([draw.integer(0, classes - 1) for _ in range(batch)])

    def module(dtype):
        return Classifier(features, length, width, heads, d_ff, layers, classes, act, norm_first, dtype)

    start = draw_parameters(module(torch.float64), draw)

    def compute(dtype):
        model = module(dtype).train()
        model.load_state_dict({key: tensor.to(dtype) for key, tensor in start.items()})
        optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=betas, eps=1e-8, weight_decay=weight_decay)
        losses, tensors = [], {"input": x.to(dtype), "target": target}
        for step in range(steps):
            optimizer.zero_grad()
            logits = model(x.to(dtype))
            loss = F.cross_entropy(logits, target)
            loss.backward()
            losses.append(loss.detach())
            if step == 0:
                tensors["logits_step0"] = logits
                tensors.update(("grad0." + key, p.grad.clone()) for key, p in model.named_parameters())
            optimizer.step()
        tensors.update(losses=torch.stack(losses), logits_final=model(x.to(dtype)))
        for key, parameter in model.named_parameters():
            tensors["param0." + key] = start[key].to(dtype)
            tensors["param_final." + key] = parameter
        return tensors

    cases.write(name, "train", dict(
        batch=batch, len=length, features=features, embed_dim=width, num_heads=heads, dim_feedforward=d_ff,
        layers=layers, classes=classes, activation="gelu_erf" if act == "gelu" else act, norm_first=int(norm_first),
        steps=steps, lr=lr, betas=betas, eps=1e-8, weight_decay=weight_decay), compute)


def model_cases(cases):
    train(cases, "train_pre_gelu")
    train(cases, "train_post_relu_2layer", heads=4, head_dim=2, layers=2, act="relu", norm_first=False, lr=3e-3)
