"""What each head adds to the output, also where W_o is no plain nn.Linear any more."""

import copy

import pytest
import torch
from tools.modules import F64, make_module
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.nn.utils import weight_norm

from attnlib import MultiHeadAttention


class LowRank(nn.Module):
    """LoRA (Hu et al. 2021, section 4.1): a frozen layer and a learned update of low rank."""

    def __init__(self, base, dropout=0.0):
        super().__init__()
        self.base, self.dropout = base, dropout
        self.A = nn.Parameter(torch.randn(3, base.in_features, dtype=F64))
        self.B = nn.Parameter(torch.randn(base.out_features, 3, dtype=F64))

    def forward(self, x):
        update = nn.functional.dropout(x, self.dropout, self.training) @ self.A.T @ self.B.T
        return self.base(x) + update


class Doubling(nn.Linear):
    """A layer whose call, not its forward, is another."""

    def __call__(self, x):
        return 2 * super().__call__(x)


def replaced(name, dropout=0.0):
    return lambda module: setattr(module, name, LowRank(getattr(module, name), dropout))


def hooked(name, hook):
    return lambda module: getattr(module, name).register_forward_hook(hook)


def with_a_forward_of_its_own(module):
    plain = module.W_o.forward
    module.W_o.forward = lambda x: 3 * plain(x)


def louder(module):
    weight_norm(module.W_o)
    module.W_o.weight_g.data *= 2  # a hook brings it into the weight, at the next call


SAME = {"nothing": lambda module: None, "a hook that looks": hooked("W_o", lambda *_: None)}
CHANGES = {
    "LoRA on W_q": replaced("W_q"),
    "LoRA on W_o": replaced("W_o"),
    "a hook that doubles": hooked("W_o", lambda _, __, y: 2 * y),
    "a hook that steers": hooked("W_o", lambda _, __, y: y + torch.ones(12, dtype=F64)),
    "a hook before": lambda m: m.W_o.register_forward_pre_hook(lambda _, x: (x[0].flip(-1),)),
    "a forward of its own": with_a_forward_of_its_own,
    "a call of its own": lambda module: setattr(module.W_o, "__class__", Doubling),
    "weight_norm": louder,
}


@pytest.mark.parametrize("name", SAME | CHANGES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.filterwarnings("ignore::FutureWarning")  # the old weight_norm's
def test_each_is_what_the_output_loses_without_the_head(name, bias):
    module, x = make_module(12, 4, bias=bias), torch.randn(2, 5, 12, dtype=F64)
    unchanged = copy.deepcopy(module)
    (SAME | CHANGES)[name](module)
    options = {"causal": True, "head_mask": torch.tensor([1.0, 0.5, 0.0, 2.0])}
    each = module.contributions(x, **options)
    output, _ = module(x, **options)
    of_nothing = module.W_o(torch.zeros_like(x))
    torch.testing.assert_close(each.sum(1) + of_nothing, output)
    for head, contribution in enumerate(each.unbind(1)):
        others = options["head_mask"] * (torch.arange(4) != head)
        lost = output - module(x, causal=True, head_mask=others)[0]
        torch.testing.assert_close(contribution, lost)
    assert each.shape == (2, 4, 5, 12) and not each[:, 2].any()
    assert torch.equal(output, unchanged(x, **options)[0]) == (name in SAME)


def test_only_a_head_s_own_columns_learn_from_what_it_adds():
    module, x = make_module(12, 4), torch.randn(2, 5, 12, dtype=F64)
    module.W_o = LowRank(module.W_o)
    module.contributions(x)[:, 1].sum().backward()
    assert module.W_o.A.grad[:, 3:6].any() and not module.W_o.A.grad[:, 6:].any()  # d_k = 3


def test_rounding_and_nan_are_no_faults_of_the_layer():
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        module, x = MultiHeadAttention(96, 32, dtype=dtype), torch.randn(2, 5, 96, dtype=dtype)
        x *= 1000  # the larger the numbers, the coarser is their rounding
        plain = module.contributions(x)
        SAME["a hook that looks"](module)
        torch.testing.assert_close(module.contributions(x), plain, atol=20, rtol=0.02)
    x[0, 1] = torch.nan
    each = module.contributions(x)
    assert each[0].isnan().all() and each[1].isfinite().all()


REFUSED = {
    "a hook that bends a little": hooked("W_o", lambda _, __, y: y + 1e-4 * y.square()),
    "dropout in an update": replaced("W_o", 0.5),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_sum_is_refused(name):
    module, x = make_module(12, 4), torch.randn(2, 5, 12, dtype=F64)
    REFUSED[name](module)
    with pytest.raises(ValueError, match=r"^W_o .*sum over heads"):
        module.contributions(x)
    if "dropout" in name:
        module.eval().contributions(x)


@pytest.mark.filterwarnings("ignore")  # PyTorch's own, that all of this moves to torchao
def test_a_quantized_module_attends_and_is_no_sum_over_heads():
    plain, x = MultiHeadAttention(32, 4).eval(), torch.randn(2, 9, 32)
    module = torch.ao.quantization.quantize_dynamic(plain, {nn.Linear})
    found, expected = (m(x, causal=True, need_weights=True) for m in (module, plain))
    torch.testing.assert_close(found, expected, atol=0.05, rtol=0.05)
    with pytest.raises(ValueError, match=r"^W_o .*quantized"):
        module.contributions(x)


@pytest.mark.filterwarnings("ignore")  # PyTorch's own, on what it is to hand on gradients
def test_a_sharded_module_gathers_its_weights_first():
    plain, x = MultiHeadAttention(12, 4), torch.randn(2, 5, 12)
    module = copy.deepcopy(plain)
    distributed.init_process_group("gloo", rank=0, world_size=1, store=distributed.HashStore())
    try:
        mesh = init_device_mesh("cpu", (1,))
        for layer in (module.W_q, module.W_o, module):
            fully_shard(layer, mesh=mesh)
        register_fsdp_forward_method(module, "contributions")
        torch.testing.assert_close(module(x), plain(x))
        torch.testing.assert_close(module.contributions(x), plain.contributions(x))
    finally:
        distributed.destroy_process_group()
