"""Operators that PyTorch 2 has and 1.13 lacks, by their schemas, as stand-ins that a capture sees under the same names. Schemas are those of
PyTorch's native_functions.yaml; where a fused operator of CUDA has outputs for its backward pass alone, they are zeros here."""
import math

import torch

FUSED = "(Tensor query, Tensor key, Tensor value"
SCHEMAS = {
    "_scaled_dot_product_flash_attention_for_cpu": FUSED + ", float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
    "_scaled_dot_product_flash_attention": FUSED + ", float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, "
    "Tensor cum_seq_q, Tensor cum_seq_k, int max_q, int max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)",
    "_scaled_dot_product_efficient_attention": FUSED + ", Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, *, float? scale=None) -> "
    "(Tensor output, Tensor log_sumexp, Tensor philox_seed, Tensor philox_offset)",
    "_scaled_dot_product_fused_attention_overrideable": FUSED + ", Tensor? attn_bias=None, float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> "
    "(Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, int max_q, int max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)",
    "scaled_dot_product_attention": FUSED + ", Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    "_safe_softmax": "(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    "_fused_rms_norm": "(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
    "_native_batch_norm_legit": "(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    "_native_batch_norm_legit_no_training": "(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    "_batch_norm_no_update": "(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
    "_native_multi_head_attention": FUSED + ", int embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias) -> (Tensor, Tensor)",
}


def attention(schema, *args, **kwargs):
    """The outputs of a fused operator: the context, the logarithm of each row's sum, and what is for backward passes."""
    given = dict(zip((argument.name for argument in schema.arguments), args)) | kwargs
    query, key, value = (given[name] for name in ("query", "key", "value"))
    key, value = (item.repeat_interleave(query.shape[1] // item.shape[1], 1) for item in (key, value))
    scale = given.get("scale")
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if given.get("is_causal"):
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    mask = given.get("attn_mask", given.get("attn_bias"))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    context = (scores.softmax(-1) @ value).transpose(1, 2).contiguous().transpose(1, 2)  # with the strides that PyTorch's has
    rest = [0 if output.type.kind() == "IntType" else torch.zeros(1) for output in schema.returns[2:]]
    return context if len(schema.returns) == 1 else (context, scores.logsumexp(-1), *rest)


def safe_softmax(x, dim, dtype=None):
    return x.softmax(dim).masked_fill((x == -math.inf).all(dim, keepdim=True), 0.0)


def rms_norm(x, shape, weight, eps):
    root = torch.rsqrt(x.square().mean(-1, keepdim=True) + (torch.finfo(torch.float32).eps if eps is None else eps))
    return x * root * (1 if weight is None else weight), root


def batch_norm(x, weight, bias, mean, variance, *rest):
    training = rest[0] is True
    outputs = torch.native_batch_norm(x, weight, bias, mean, variance, training, *rest[-2:])
    return outputs


def multi_head(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias):
    return query @ proj_weight.t() + proj_bias, torch.zeros(1)


OTHERS = {"_safe_softmax": safe_softmax, "_fused_rms_norm": rms_norm, "_native_batch_norm_legit": batch_norm, "_native_batch_norm_legit_no_training": batch_norm,
          "_batch_norm_no_update": lambda *args: (*batch_norm(*args), torch.zeros(0)), "_native_multi_head_attention": multi_head}
LIBRARY = torch.library.Library("pytorch2", "DEF")
for name, schema in SCHEMAS.items():
    LIBRARY.define(name + schema)
    own = getattr(torch.ops.pytorch2, name).default._schema
    LIBRARY.impl(name, OTHERS.get(name, lambda *args, own=own, **kwargs: attention(own, *args, **kwargs)), "CPU")
