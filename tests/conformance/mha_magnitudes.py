"""How large the rounding errors of multi-head attention can be: its sums of absolute values.

A sum loses what its terms are rounded to, however small they make the result: a gradient that cancels to nearly
nothing, as the key bias's does, has errors as large as its terms. So forward and backward run here once more, with
every term taken by its absolute value.
"""
from operator import mul


def transpose(a):
    return list(zip(*a))


def product(a, b):
    columns = transpose(b)
    return [[sum(map(mul, row, column)) for column in columns] for row in a]


def add(*matrices):
    return [[sum(values) for values in zip(*rows)] for rows in zip(*matrices)]


def absolute(tensor, cols):
    values = [abs(value) for value in tensor.values]
    return [values[i:i + cols] for i in range(0, len(values), cols)]


def largest(matrix):
    return max(map(max, matrix))


def mha_magnitudes(query, key, value, parameters, attn, grad_out):
    """By name of a reported tensor; parameters as query.weight [in, out], query.bias, ...

    Softmax turns an absolute error of a score into a relative one of a weight, and so of all that follows:
    everything is multiplied by the largest score, if that is above 1.
    """
    batch, heads, seq_len, kv_len = attn.shape
    inputs = {name: absolute(x, x.shape[-1]) for name, x in (("query", query), ("key", key), ("value", value))}
    weights = {name: absolute(parameters[name + ".weight"], parameters[name + ".weight"].shape[1])
               for name in ("query", "key", "value", "output")}

    def project(x, name):
        y = product(x, weights[name])
        if name + ".bias" not in parameters:
            return y
        bias, = absolute(parameters[name + ".bias"], len(y[0]))
        return [[a + b for a, b in zip(row, bias)] for row in y]

    q, k, v = (project(inputs[name], name) for name in ("query", "key", "value"))
    dy = absolute(grad_out, grad_out.shape[-1])
    d_context = product(dy, transpose(weights["output"]))
    probabilities = absolute(attn, kv_len)
    d_k = len(q[0]) // heads
    scale = d_k ** -0.5

    def head(matrix, sequence, h):
        tokens = len(matrix) // batch
        return [row[h * d_k:(h + 1) * d_k] for row in matrix[sequence * tokens:(sequence + 1) * tokens]]

    score = 1.0
    context, dq, dk, dv = [], [], [], []  # rows of all sequences
    for sequence in range(batch):
        parts = []  # of each head
        for h in range(heads):
            q_h, k_h, v_h, d_context_h = (head(matrix, sequence, h) for matrix in (q, k, v, d_context))
            first = (sequence * heads + h) * seq_len
            p = probabilities[first:first + seq_len]
            score = max(score, scale * largest(product(q_h, transpose(k_h))))
            dp = product(d_context_h, transpose(v_h))
            ds = [[scale * a * (b + sum(map(mul, p_row, dp_row))) for a, b in zip(p_row, dp_row)]
                  for p_row, dp_row in zip(p, dp)]
            parts.append((product(p, v_h), product(ds, k_h), product(transpose(ds), q_h),
                          product(transpose(p), d_context_h)))
        for rows, of_heads in zip((context, dq, dk, dv), zip(*parts)):
            rows.extend([sum(row, []) for row in zip(*of_heads)])

    result = {"out": largest(project(context, "output")), "attn": largest(probabilities)}
    result["out_inference"] = result["out"]
    d_inputs = {name: product(d, transpose(weights[name])) for name, d in (("query", dq), ("key", dk), ("value", dv))}
    if key is query:
        result["grad.query"] = largest(add(*d_inputs.values()))
    else:
        result.update({"grad." + name: largest(d) for name, d in d_inputs.items()})
    for name, x, d in (("query", inputs["query"], dq), ("key", inputs["key"], dk), ("value", inputs["value"], dv),
                       ("output", context, dy)):
        result[f"grad.{name}.weight"] = largest(product(transpose(x), d))
        result[f"grad.{name}.bias"] = max(map(sum, transpose(d)))
    return {name: score * magnitude for name, magnitude in result.items()}
