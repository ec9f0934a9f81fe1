"""Attention in plain Python loops: slow, obvious, and written without looking at attnlib."""

import math


def attend(q, k, v, allowed=None, bias=None):
    """Return (output, weights) as nested lists for one head: q [T_q][d_k], k [T_k][d_k], v.

    `allowed` and `bias` are [T_q][T_k]; a bias is added to the scores.
    """
    output, weights = [], []
    for i, query in enumerate(q):
        visible = [j for j in range(len(k)) if allowed is None or allowed[i][j]]
        scores = {}
        for j in visible:
            scores[j] = sum(a * b for a, b in zip(query, k[j], strict=True)) / math.sqrt(len(query))
            scores[j] += bias[i][j] if bias is not None else 0.0
        largest = max(scores.values(), default=0.0)
        total = sum(math.exp(s - largest) for s in scores.values())
        row = [math.exp(scores[j] - largest) / total if j in scores else 0.0 for j in range(len(k))]
        weights.append(row)
        output.append([sum(row[j] * v[j][c] for j in range(len(k))) for c in range(len(v[0]))])
    return output, weights


def affine(x, weight, bias):
    """Return x @ weight^T + bias for x [T][d_in] and torch's weight [d_out][d_in]."""
    rows = []
    for row in x:
        rows.append(
            [
                sum(a * w for a, w in zip(row, column, strict=True)) + b
                for column, b in zip(weight, bias, strict=True)
            ]
        )
    return rows


def multi_head_attention(query, key, value, module, allowed=None, bias=None, factors=None):
    """Return (output, weights) of one sample with a module's own numbers, head by head.

    `allowed` and `bias` are [h][T_q][T_k], `factors` [h] multiply the heads' outputs.
    """
    matrices = {name: getattr(module, name) for name in ("W_q", "W_k", "W_v", "W_o")}
    numbers = {
        name: (linear.weight.tolist(), linear.bias.tolist()) for name, linear in matrices.items()
    }
    q = affine(query, *numbers["W_q"])
    k = affine(key, *numbers["W_k"])
    v = affine(value, *numbers["W_v"])
    width = module.d_model // module.num_heads
    joined = [[] for _ in query]
    weights = []
    for head in range(module.num_heads):
        mine = slice(head * width, (head + 1) * width)
        kv_head = head * module.num_kv_heads // module.num_heads
        theirs = slice(kv_head * width, (kv_head + 1) * width)
        out, rows = attend(
            [row[mine] for row in q], [row[theirs] for row in k], [row[theirs] for row in v],
            None if allowed is None else allowed[head], None if bias is None else bias[head],
        )  # fmt: skip
        weights.append(rows)
        factor = 1.0 if factors is None else factors[head]
        for row, extra in zip(joined, out, strict=True):
            row.extend(factor * number for number in extra)
    return affine(joined, *numbers["W_o"]), weights
