"""The way through several heads shows what the module computes."""

import torch
from tools.figure_reading import drawn_maps

from attncourse.lessons.l04 import figures
from attnlib import MultiHeadAttention, palette


def test_shows_what_the_module_computes():
    module, x = MultiHeadAttention(6, 3, bias=False), torch.randn(2, 6)
    matrices = [p.weight.T for p in (module.W_q, module.W_k, module.W_v, module.W_o)]
    figure = figures.plot_flow(x, *matrices, 3, ["a", "b"])
    shown = {}
    for ax, image in zip(figure.axes, drawn_maps(figure), strict=True):
        shown.setdefault(ax.get_title(), []).append(image.float())
    output, weights = module(x[None], need_weights=True)
    wanted = {"X": x, "joined @ W_o": output[0], "W_o": matrices[3]}
    wanted |= {f"head {head + 1} looks": weights[0, head] for head in range(3)}
    wanted |= {name: x @ matrix for name, matrix in zip("QKV", matrices, strict=False)}
    for name, numbers in wanted.items():
        assert torch.allclose(torch.cat(shown[name], 1), numbers, atol=1e-5), name
    assert torch.allclose(torch.cat(shown["and brings"], 1), shown["joined"][0])
    for q, k, scores in zip(shown["Q"], shown["K"], shown["Q @ K.T"], strict=True):
        assert torch.allclose(scores, q @ k.T, atol=1e-5)


def test_lines_mark_which_rows_of_W_o_a_head_meets():
    figure = figures.plot_flow(torch.randn(2, 6), *torch.randn(4, 6, 6), 3)
    panels = {ax.get_title(): ax for ax in figure.axes}
    pairs = zip(panels["joined"].lines, panels["W_o"].lines, strict=True)
    for head, (below, beside) in enumerate(pairs):
        mine = [i for i in range(6) if below.get_xdata()[0] < i < below.get_xdata()[1]]
        rows = [i for i in range(6) if beside.get_ydata()[0] < i < beside.get_ydata()[1]]
        assert mine == rows == [2 * head, 2 * head + 1]
        assert below.get_color() == beside.get_color() == palette.head_color(head)
