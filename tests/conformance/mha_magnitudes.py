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


def mha_magnitudes(query, key, value, parameters, attn, grad_out, kv_heads):
    """By name of a reported tensor; parameters as query.weight [in, out], query.bias, ... and perhaps bias_k, bias_v.

    Of keys and values there may be more weights than tokens: of bias_k and bias_v, then of zeros.

    Softmax turns an absolute error of a score into a relative one of a weight, and so of all that follows:
    everything is multiplied by the largest score, if that is above 1.
    """
    batch, heads, seq_len, num_keys = attn.shape
    kv_len = key.shape[1]
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
    probabilities = absolute(attn, num_keys)
    d_k = len(q[0]) // heads
    scale = d_k ** -0.5

    def head(matrix, sequence, h, appended=None):
        tokens = len(matrix) // batch
        rows = matrix[sequence * tokens:(sequence + 1) * tokens]
        if appended in parameters:
            rows = rows + absolute(parameters[appended], len(rows[0]))
        if appended:
            rows = rows + [[0.0] * len(rows[0])] * (num_keys - len(rows))
        return [row[h * d_k:(h + 1) * d_k] for row in rows]

    score = 1.0
    context, dq, dk, dv = [], [], [], []  # rows of all sequences
    d_appended = {"bias_k": 0.0, "bias_v": 0.0}
    for sequence in range(batch):
        of_heads, of_kv_heads = [], []
        for h in range(heads):
            g = h // (heads // kv_heads)
            q_h, d_context_h = (head(matrix, sequence, h) for matrix in (q, d_context))
            k_h, v_h = head(k, sequence, g, "bias_k"), head(v, sequence, g, "bias_v")
            first = (sequence * heads + h) * seq_len
            p = probabilities[first:first + seq_len]
            score = max(score, scale * largest(product(q_h, transpose(k_h))))
            dp = product(d_context_h, transpose(v_h))
            ds = [[scale * a * (b + sum(map(mul, p_row, dp_row))) for a, b in zip(p_row, dp_row)]
                  for p_row, dp_row in zip(p, dp)]
            of_heads.append((product(p, v_h), product(ds, k_h)))
            both = (product(transpose(ds), q_h), product(transpose(p), d_context_h))
            if g < len(of_kv_heads):
                of_kv_heads[g] = tuple(map(add, of_kv_heads[g], both))
            else:
                of_kv_heads.append(both)
        for rows, parts in zip((context, dq, dk, dv), (*zip(*of_heads), *zip(*of_kv_heads))):
            rows.extend([sum(row, []) for row in zip(*parts)])
        for name, rows in (("bias_k", dk), ("bias_v", dv)):
            d_appended[name] += largest(rows[-num_keys:])
            del rows[len(rows) - num_keys + kv_len:]

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
    result.update({"grad." + name: d for name, d in d_appended.items()})
    return {name: score * magnitude for name, magnitude in result.items()}
