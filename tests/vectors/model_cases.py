"""The cases of a whole model, trained: losses, logits, gradients of the first step, parameters at the end."""
import torch
from torch import nn
from torch.nn import functional as F

from transformer_cases import LEAST_WIDTH, draw_parameters, leaf


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


class MaskedClassifier(Classifier):
    """head(mean over real tokens of norm(encoder(embed(x) + pos))); positions and norm only where they are wanted."""

    def __init__(self, features, length, width, heads, d_ff, layers, classes, act, norm_first, eps, positions,
                 final_norm, dtype):
        super().__init__(features, length, width, heads, d_ff, layers, classes, act, norm_first, dtype)
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = eps
        if not positions:
            self.pos = None
        if not final_norm:
            self.norm = None

    def forward(self, x, length):
        pad = torch.arange(x.shape[1]) >= length[:, None]
        h = self.embed(x)
        if self.pos is not None:
            h = h + self.pos
        h = self.encoder(h, src_key_padding_mask=pad)
        if self.norm is not None:
            h = self.norm(h)
        return self.head(h.masked_fill(pad[:, :, None], 0).sum(1) / length[:, None])


def trained_model(cases, name, rows=5, length=5, features=3, heads=2, head_dim=4, d_ff=12, layers=1, classes=3,
                  act="gelu", norm_first=True, eps=1e-5, positions=True, final_norm=True, input_scale=1.0, steps=40):
    """A classifier that is trained, some of what it is asked, and its logits: with lengths, as a file of weights.

    What stands in padding is large, and none of the model's business.
    """
    draw = cases.draw(name)
    if cases.random_shapes:
        rows, length, features = draw.integer(1, 7), draw.integer(1, 11), draw.integer(1, 13)
        heads = draw.choice([1, 2, 3, 4])
        head_dim, d_ff = draw.integer(-(-LEAST_WIDTH // heads), 9), draw.integer(3, 40)
        classes = draw.integer(2, 10)
    width = heads * head_dim
    label = torch.tensor([draw.integer(0, classes - 1) for _ in range(rows)], dtype=torch.int32)
    lengths = torch.tensor([draw.integer(1, length) for _ in range(rows)], dtype=torch.int32)
    lengths[0] = length
    pad = torch.arange(length) >= lengths[:, None]
    centers = draw.normal(classes, 1, features)
    x = (draw.normal(rows, length, features) + centers[label.long()]).masked_fill(pad[:, :, None], 0)
    x = (x + 1e4 * draw.normal(rows, length, features) * pad[:, :, None]).float().double()

    def module(dtype):
        return MaskedClassifier(features, length, width, heads, d_ff, layers, classes, act, norm_first, eps, positions,
                                final_norm, dtype).train()

    model = module(torch.float64)
    model.load_state_dict(draw_parameters(model, draw))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(x * input_scale, lengths), label.long()).backward()
        optimizer.step()
    state = {key: tensor.float().double() for key, tensor in model.state_dict().items()}

    def compute(dtype):
        m = module(dtype)
        m.load_state_dict({key: tensor.to(dtype) for key, tensor in state.items()})
        return {"input": x.to(dtype), "length": lengths, "label": label,
                "logits": m(x.to(dtype) * input_scale, lengths),
                **{"param." + key: tensor.to(dtype) for key, tensor in state.items()}}

    cases.write(name, "trained_model", dict(
        seq_len=length, d_in=features, embed_dim=width, num_heads=heads, dim_feedforward=d_ff, layers=layers,
        classes=classes, activation="gelu_erf" if act == "gelu" else act, norm_first=int(norm_first),
        layer_norm_eps=eps, input_scale=input_scale), compute)


def batch_of_classes(cases, name, rows=3, weighted=False, smoothing=0.0, ignored=0.0, batch=5, width=4, classes=6,
                     steps=6, max_norm=0.0, lr=0.2):
    """A Linear of every token, trained by torch.optim.SGD on one batch, whose mean is over all its targets."""
    draw = cases.draw(name)
    x, weight, bias = draw.normal(batch, rows, width), draw.normal(classes, width), draw.normal(classes)
    target = torch.tensor([[draw.integer(0, classes - 1) for _ in range(rows)] for _ in range(batch)])
    target[draw.true_with(ignored, batch, rows)] = -100
    class_weight = draw.normal(classes).abs() + 0.1

    def compute(dtype):
        parameters = {"weight": leaf(weight, dtype), "bias": leaf(bias, dtype)}
        weights = {"class_weight": class_weight.to(dtype)} if weighted else {}
        optimizer = torch.optim.SGD(list(parameters.values()), lr=lr)
        losses, norms = [], []
        for _ in range(steps):
            optimizer.zero_grad()
            logits = F.linear(x.to(dtype), parameters["weight"], parameters["bias"])
            loss = F.cross_entropy(logits.reshape(-1, classes), target.reshape(-1), label_smoothing=smoothing,
                                   weight=weights.get("class_weight"))
            loss.backward()
            norms.append(torch.nn.utils.clip_grad_norm_(list(parameters.values()), max_norm or float("inf")))
            losses.append(loss.detach())
            optimizer.step()
        return {"input": x.to(dtype), "target": target, **weights, "losses": torch.stack(losses),
                "norms": torch.stack(norms), "param0.weight": weight.to(dtype), "param0.bias": bias.to(dtype),
                "param_final.weight": parameters["weight"], "param_final.bias": parameters["bias"]}

    cases.write(name, "batch_of_classes", dict(optimizer="sgd", steps=steps, lr=lr, label_smoothing=smoothing,
                                               max_norm=max_norm), compute)


def model_cases(cases):
    batch_of_classes(cases, "classes_one_label_weighted", rows=1, weighted=True)
    batch_of_classes(cases, "classes_ignored", ignored=0.4)
    batch_of_classes(cases, "classes_weighted_smooth_ignored", weighted=True, smoothing=0.1, ignored=0.3)
    batch_of_classes(cases, "classes_weighted_clipped", weighted=True, max_norm=0.375)
    train(cases, "train_pre_gelu")
    train(cases, "train_post_relu_2layer", heads=4, head_dim=2, layers=2, act="relu", norm_first=False, lr=3e-3)
    trained_model(cases, "trained_pre_gelu")
    trained_model(cases, "trained_post_relu_2layer", heads=3, head_dim=3, d_ff=7, layers=2, act="relu", norm_first=False,
                  eps=1e-3)
    trained_model(cases, "trained_pre_relu_3layer_no_pos", rows=3, length=3, features=1, heads=1, head_dim=5, d_ff=11,
                  layers=3, classes=2, act="relu", positions=False, input_scale=0.25)
    trained_model(cases, "trained_post_gelu_no_norm", length=7, features=5, heads=4, head_dim=2, d_ff=9, classes=5,
                  norm_first=False, final_norm=False)
