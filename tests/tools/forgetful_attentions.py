"""Attnlib's attention, wrong in one situation alone: the question about it is the first to tell.

Some for each question, by its name.
"""

from functools import wraps
from types import SimpleNamespace

import torch

from attnlib import MultiHeadAttention

LIMITS = "mask", "key_mask", "causal"


def off(call, output, weights):
    return output + 1, weights


def steeper(call, output, weights):
    """Another gradient, and nothing else."""
    return output + (call.query - call.query.detach()).sum(), weights


def wrong(when, after=None, *, before=None, without=None):
    """Return attention that does something otherwise where a call is so, or forgets a limit."""
    after = after or (off if before is without is None else lambda call, *result: result)

    class Wrong(MultiHeadAttention):
        @wraps(MultiHeadAttention.forward)
        def forward(self, query, key=None, value=None, **options):
            limits = dict.fromkeys((*LIMITS, "cache")) | options
            call = SimpleNamespace(**limits, module=self, query=query, key=key, options=options)
            call.two = key is not None and key is not query
            call.limits = [limits[name] for name in LIMITS]
            call.B, call.T_q, call.T_k = *query.shape[:2], (query if key is None else key).shape[1]
            call.grouped = self.num_kv_heads < self.num_heads
            call.drops = self.training and self.dropout > 0
            call.of_each = call.mask is not None and call.mask.dim() == 3
            is_so = when(call) and (without is None or limits[without] is not None)
            if is_so and without:
                options[without] = False if without == "causal" else None
            if is_so and before:
                before(call)
            result = super().forward(query, key, value, **options)
            return after(call, *result) if is_so else result

    return Wrong


def padded(call):
    return call.key_mask is not None


def masked(call):
    return call.mask is not None and not call.of_each


def is_given(limit):
    return limit is not None and limit is not False


def drop_what_it_should_keep(call):
    call.module.dropout = 0.9


def keep_mask(call):
    """Use it for the next tokens of the same shape, if they have no limit."""
    module = call.module
    if masked(call):
        module.kept = call.mask
    elif not any(map(is_given, call.limits)) and len(getattr(module, "kept", ())) == call.T_q:
        call.options["mask"] = module.kept


PARTLY = {
    "one sample, one token": [wrong(lambda c: c.B > 8)],
    "transposed tokens": [wrong(lambda c: not c.query.is_contiguous() and not c.two)],
    "arguments left unchanged": [
        wrong(lambda c: masked(c) and c.causal, before=lambda c: c.mask.logical_not_()),
        wrong(lambda c: c.two, before=lambda c: c.key.data.mul_(0.5)),
    ],
    "two sequences": [wrong(lambda c: c.two and c.B > 8)],
    "a mask between two sequences": [wrong(lambda c: c.two, without="mask")],
    "any number of samples": [wrong(lambda c: c.of_each and c.B != 3)],
    "limits together": [wrong(lambda c: masked(c) and padded(c))],
    "a second call": [wrong(lambda c: not c.two, before=keep_mask)],
    "other sizes": [
        wrong(lambda c: c.module.num_heads == 1),
        wrong(lambda c: c.module.d_model // c.module.num_heads % 2),
    ],
    "padding anywhere": [wrong(lambda c: padded(c) and (c.key_mask.int().diff() > 0).any())],
    "padding between two sequences": [wrong(lambda c: c.two, without="key_mask")],
    "limits on few and many": [
        wrong(lambda c: masked(c) and c.B == 1, without="mask"),
        wrong(lambda c: c.T_q == 1 and padded(c) and c.cache is None),
    ],
    "as many samples as tokens": [
        wrong(lambda c: masked(c) and c.B == c.T_q),
        wrong(lambda c: masked(c) and not c.mask.is_contiguous()),
    ],
    "masks for samples and others": [
        wrong(lambda c: c.of_each, without="causal"),
        wrong(lambda c: c.of_each and c.two, without="mask"),
    ],
    "a very large score": [wrong(lambda c: c.query.abs().amax() > 20)],
    "a forbidden key that shouts": [wrong(lambda c: padded(c) and c.query.abs().amax() > 20)],
    "a long sequence": [wrong(lambda c: c.T_k > 64, without="mask")],
    "gradients": [wrong(lambda c: c.two, steeper)],
    "gradients with a limit": [wrong(lambda c: masked(c) and c.T_q == 1, steeper)],
    "gradients with masks for samples": [wrong(lambda c: c.of_each, steeper)],
    "a cache": [wrong(lambda c: c.cache is not None)],
    "grouped heads": [
        wrong(lambda c: c.grouped and c.two and c.T_q == c.T_k),
        wrong(lambda c: c.grouped and c.B == 1),
    ],
    "limits with grouped heads": [wrong(lambda c: c.grouped and masked(c))],
    "masks with grouped heads": [wrong(lambda c: c.grouped and c.of_each)],
    "gradients with grouped heads": [wrong(lambda c: c.grouped, steeper)],
    "gradients with grouped heads and a limit": [
        wrong(lambda c: c.grouped and any(map(is_given, c.limits)), steeper)
    ],
    "training with dropout": [wrong(lambda c: c.drops, before=lambda call: torch.manual_seed(0))],
    "limits in training with dropout": [
        wrong(lambda c: c.drops and c.of_each, without="mask"),
        wrong(lambda c: c.drops, without="key_mask"),
    ],
    "the dropout rate": [wrong(lambda c: c.drops, before=drop_what_it_should_keep)],
    "padding that hides nothing": [wrong(lambda c: padded(c) and c.key_mask.all())],
    "limits with a cache": [
        wrong(lambda c: c.cache is not None and masked(c)),
        wrong(lambda c: c.cache is not None and padded(c)),
    ],
    "a cache with grouped heads": [wrong(lambda c: c.cache is not None and c.grouped)],
}
AT_AN_EDGE = {
    "outputs of padding": [wrong(lambda c: padded(c) and not c.two and c.cache is None,
        lambda c, output, weights: (output.masked_fill(~c.key_mask[..., None], 0.0), weights))],
    "a mask of ones and zeros": [wrong(lambda c: masked(c) and c.mask.dtype != torch.bool,
        before=lambda c: c.options.update(mask=~(~c.mask).bool()))],
    "causal between two sequences": [wrong(lambda c: c.T_q != c.T_k and c.cache is None,
        without="causal")],
    "half precision": [wrong(lambda c: c.query.dtype == torch.float16,
        lambda c, output, weights: (output.float(), weights))],
    "a mask for each head": [wrong(lambda c: c.mask is not None and c.mask.dim() == 4)],
    "gradients of the weights": [wrong(lambda c: True, lambda c, output, weights:
        (output, weights if weights is None else weights + steeper(c, 0, None)[0]))],
    "arguments left out": [wrong(lambda c: c.key is None)],
}  # fmt: skip
