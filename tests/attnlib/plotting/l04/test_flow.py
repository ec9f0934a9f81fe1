"""The way through several heads shows what the module computes."""

import pytest
import torch
from tools.figure_reading import drawn_maps

from attnlib import MultiHeadAttention, plotting


class TestPlotFlow:
    def test_shows_what_the_module_computes(self):
        module, x = MultiHeadAttention(6, 3, bias=False), torch.randn(2, 6)
        matrices = [p.weight.T for p in (module.W_q, module.W_k, module.W_v, module.W_o)]
        figure = plotting.plot_flow(x, *matrices, 3, ["a", "b"])
        shown = {}
        for ax, image in zip(figure.axes, drawn_maps(figure), strict=True):
            shown.setdefault(ax.get_title(), []).append(image.float())
        output, weights = module(x[None], need_weights=True)
        assert torch.allclose(shown["X"][0], x)
        assert torch.allclose(shown["joined @ W_o"][0], output[0], atol=1e-5)
        for head in range(3):
            assert torch.allclose(shown[f"head {head + 1} looks"][0], weights[0, head], atol=1e-5)
        assert torch.allclose(torch.cat(shown["and brings"], 1), shown["joined"][0])

    def test_bad_input(self):
        eye = torch.eye(4)
        with pytest.raises(ValueError, match="num_heads=3"):
            plotting.plot_flow(eye, eye, eye, eye, eye, 3)
        with pytest.raises(ValueError, match=r"w_v .* d=4"):
            plotting.plot_flow(eye, eye, eye, torch.eye(3), eye, 2)
        with pytest.raises(ValueError, match="tokens must hold 4"):
            plotting.plot_flow(eye, eye, eye, eye, eye, 2, ["a"])
