# A kernel is written in Triton's own language, and Triton may be absent.
# mypy: ignore-errors
"""Heatmaps on a GPU: the sums of `attnlib.heatmap`, by one Triton kernel.

Tests run it in Triton's interpreter and compile it for GPUs; on a GPU it hasn't run yet.

A program takes a block of queries, all from one row of the map, and sweeps the keys cell by cell.
It keeps log2 of each cell's sum of exp2(scores) in scratch memory until the block has seen all
keys, then normalizes and pools. No two programs write to one place, so nothing is atomic and
results repeat exactly.
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.runtime.errors import OutOfResources

__all__ = ["OutOfResources", "fits", "pooled"]

BLOCK = 128  # queries, and keys, at a time
SMALLEST_CELL = 64  # tokens a side; smaller cells would leave most of a block empty
# The largest d_k; wider blocks of float32 don't fit into an A100's shared memory.
WIDEST = {torch.float32: 64, torch.float16: 128, torch.bfloat16: 128}


def fits(q: Tensor, height: int, width: int) -> bool:
    """Return whether the kernel takes these queries and cells."""
    return q.shape[-1] <= WIDEST.get(q.dtype, 0) and min(height, width) >= SMALLEST_CELL


def pooled(
    q: Tensor, k: Tensor, height: int, width: int, causal: bool, key_mask: Tensor | None,
    scale: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return what `attnlib.heatmap._pooled` returns, for q and k on a GPU.

    Raises OutOfResources if the GPU's shared memory is too small for heads of this width.
    """
    B, h, T_q, d_k = q.shape
    rows, cells = math.ceil(T_q / height), math.ceil(k.shape[2] / width)
    parts = math.ceil(height / BLOCK)  # blocks of queries in a row of the map
    blocks = B * h * rows * parts
    programs = min(blocks, 2 * _multiprocessors(q.device))
    pieces = torch.zeros(B, h, rows, parts, cells, dtype=torch.float32, device=q.device)
    attending = torch.zeros(B, h, rows, parts, dtype=torch.float32, device=q.device)
    scratch = torch.empty(programs, cells, BLOCK, dtype=torch.float32, device=q.device)
    # Without a mask, any pointer will do, as the kernel doesn't read it.
    allowed = q if key_mask is None else key_mask.to(torch.uint8).contiguous()
    with torch.cuda.device_of(q):  # Triton launches on the current device
        _sweep[(programs,)](
            q, k, allowed, scratch, pieces, attending, *q.stride(), *k.stride(),
            h, h // k.shape[1], T_q, k.shape[2], height, width, rows, cells, parts, blocks, scale,
            d_k=d_k, BLOCK_D=max(16, triton.next_power_of_2(d_k)), BLOCK=BLOCK, BLOCK_CELLS=16,
            causal=causal, masked=key_mask is not None, num_warps=8,
        )  # fmt: skip
    return pieces.sum(3), attending.sum(3)


def _multiprocessors(device: torch.device) -> int:
    """Return the number of multiprocessors, or 1 for Triton's interpreter."""
    if device.type != "cuda":
        return 1
    return torch.cuda.get_device_properties(device).multi_processor_count


@triton.jit
def _sweep(
    q, k, allowed, scratch, pieces, attending,
    q_batch, q_head, q_token, q_feature, k_batch, k_head, k_token, k_feature,
    h, sharing, T_q, T_k, height, width, rows, cells, parts, blocks, scale,
    d_k: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK: tl.constexpr, BLOCK_CELLS: tl.constexpr,
    causal: tl.constexpr, masked: tl.constexpr,
):  # fmt: skip
    """Fill pieces [B, h, rows, parts, cells] and attending [B, h, rows, parts]."""
    LOWEST: tl.constexpr = -3.0e38  # not -inf: -inf - -inf would be NaN
    lanes = tl.arange(0, BLOCK)
    features = tl.arange(0, BLOCK_D)
    mine = scratch + tl.program_id(0).to(tl.int64) * cells * BLOCK
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        head = block // (rows * parts)  # of all B * h
        sample = (head // h).to(tl.int64)
        row = block // parts % rows
        start = row * height + block % parts * BLOCK
        stop = tl.minimum(tl.minimum(start + BLOCK, (row + 1) * height), T_q)
        queries = start + lanes
        q_at = q + sample * q_batch + (head % h).to(tl.int64) * q_head
        k_at = k + sample * k_batch + (head % h // sharing).to(tl.int64) * k_head
        x = tl.load(
            q_at + queries[:, None].to(tl.int64) * q_token + features[None, :] * q_feature,
            mask=(queries[:, None] < stop) & (features[None, :] < d_k), other=0.0,
        )  # fmt: skip
        seen = T_k
        if causal:
            seen = tl.minimum(T_k, stop)
        seen_cells = tl.cdiv(tl.maximum(seen, 0), width)
        peak = tl.full([BLOCK], LOWEST, tl.float32)
        total = tl.zeros([BLOCK], tl.float32)
        for cell in range(0, seen_cells):
            end = tl.minimum((cell + 1) * width, seen)
            cell_peak = tl.full([BLOCK], LOWEST, tl.float32)
            cell_total = tl.zeros([BLOCK], tl.float32)
            for first in range(cell * width, end, BLOCK):
                keys = first + lanes
                y = tl.load(
                    k_at + keys[None, :].to(tl.int64) * k_token + features[:, None] * k_feature,
                    mask=(keys[None, :] < end) & (features[:, None] < d_k), other=0.0,
                )  # fmt: skip
                # The scale goes on the float32 scores: on bfloat16 queries it would round them.
                scores = tl.dot(x, y, input_precision="ieee") * scale
                may = keys[None, :] < end
                if causal:
                    may = may & (keys[None, :] <= queries[:, None])
                if masked:
                    real = tl.load(allowed + sample * T_k + keys, mask=keys < end, other=0)
                    may = may & (real[None, :] != 0)
                scores = tl.where(may, scores, float("-inf"))
                higher = tl.maximum(cell_peak, tl.max(scores, 1))
                cell_total *= tl.exp2(cell_peak - higher)
                cell_total += tl.sum(tl.exp2(scores - higher[:, None]), 1)
                cell_peak = higher
            log_sum = cell_peak + tl.log2(tl.where(cell_total > 0, cell_total, 1.0))
            log_sum = tl.where(cell_total > 0, log_sum, float("-inf"))
            tl.store(mine + cell * BLOCK + lanes, log_sum)
            higher = tl.maximum(peak, cell_peak)
            total = total * tl.exp2(peak - higher) + cell_total * tl.exp2(cell_peak - higher)
            peak = higher
        may_attend = (total > 0) & (queries < stop)
        # 0, or NaN if a score was NaN or infinite, which no comparison would show
        broken = tl.sum(tl.where(queries < stop, total - total, 0.0), 0)
        log_total = peak + tl.log2(tl.where(may_attend, total, 1.0))
        tl.store(attending + block, tl.sum(may_attend.to(tl.float32), 0))
        tl.debug_barrier()  # other threads of this program may have written what is read now
        for first_cell in range(0, seen_cells, BLOCK_CELLS):
            some = first_cell + tl.arange(0, BLOCK_CELLS)
            logs = tl.load(
                mine + some[:, None] * BLOCK + lanes[None, :],
                mask=some[:, None] < seen_cells, other=float("-inf"),
            )  # fmt: skip
            weights = tl.where(may_attend[None, :], tl.exp2(logs - log_total[None, :]), 0.0)
            place = (tl.zeros([BLOCK_CELLS], tl.int64) + block) * cells + some
            tl.store(pieces + place, tl.sum(weights, 1) + broken, mask=some < seen_cells)
        tl.debug_barrier()  # the next block overwrites the scratch
