"""Operators that only an NPU has and that common modules reach: fused attention, LSTM cell, storage formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch

from fuzzer.simnpu.eager.aliasing import alias, to_device
from fuzzer.simnpu.eager.draws import seed_for
from fuzzer.simnpu.eager.gradients import gradients

NATIVE = frozenset({"empty_with_format", "get_npu_format", "get_storage_size", "unsafe_empty_with_format"})
"""`npu` operators about storage formats that torch_npu answers by itself."""

_LEFT_UP_CAUSAL, _RIGHT_DOWN_CAUSAL = 2, 3
"""Sparse modes in which the given 2048 x 2048 mask is a template for a mask of the true size."""


def _hidden(query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor | None, sparse_mode: int) -> torch.Tensor | None:
    """Boolean mask, true where a query may not see a key; None if every query sees every key."""
    rows, columns = query.shape[-2], key.shape[-2]
    if sparse_mode in (_LEFT_UP_CAUSAL, _RIGHT_DOWN_CAUSAL):
        shift = columns - rows if sparse_mode == _RIGHT_DOWN_CAUSAL else 0
        return torch.ones(rows, columns, dtype=torch.bool).triu(1 + shift)
    if sparse_mode not in (0, 1):
        raise NotImplementedError(f"simnpu: npu_fusion_attention with sparse_mode={sparse_mode} is not supported")
    return None if mask is None else mask.bool()


def _scores(query: torch.Tensor, key: torch.Tensor, scale: float, hidden: torch.Tensor | None) -> torch.Tensor:
    """Scaled products of queries and keys in float32; heads of the keys are repeated for grouped queries."""
    key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
    scores = query.float() @ key.float().transpose(-2, -1) * scale
    return scores if hidden is None else scores.masked_fill(hidden, float("-inf"))


def _attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    scale: float,
    hidden: torch.Tensor | None,
    keep: float,
    seed: int,
) -> torch.Tensor:
    weights = torch.softmax(_scores(query, key, scale, hidden), -1).nan_to_num(0.0)
    if keep < 1.0:
        kept = torch.rand(weights.shape, generator=torch.Generator().manual_seed(seed)) < keep
        weights = weights * kept / keep
    value = value.repeat_interleave(query.shape[1] // value.shape[1], 1)
    return (weights @ value.float()).to(query.dtype)


def _check_layout(input_layout: str, unsupported: Mapping[str, Any]) -> None:
    if input_layout != "BNSD":
        raise NotImplementedError(f"simnpu: npu_fusion_attention with layout {input_layout} is not supported")
    for name, value in unsupported.items():
        if value is not None:
            raise NotImplementedError(f"simnpu: npu_fusion_attention with {name} is not supported")


def fusion_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    head_num: int,
    input_layout: str,
    pse: torch.Tensor | None = None,
    padding_mask: torch.Tensor | None = None,
    atten_mask: torch.Tensor | None = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = 2147483647,
    next_tockens: int = 2147483647,
    inner_precise: int = 0,
    prefix: Any = None,
    actual_seq_qlen: torch.Tensor | None = None,
    actual_seq_kvlen: torch.Tensor | None = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
    softmax_layout: str = "",
    sink: torch.Tensor | None = None,
) -> tuple[torch.Tensor, ...]:
    """`npu_fusion_attention_v3` for [batch, heads, length, width]: what `scaled_dot_product_attention` calls.

    Gives the attention, the maximum and sum of each softmax row ([batch, heads, length, 8] float32), an empty tensor,
    and the seed and offset of the dropout mask.
    """
    _check_layout(input_layout, {"pse": pse, "prefix": prefix, "actual_seq_qlen": actual_seq_qlen, "sink": sink})
    device = query.device
    q, k, v = alias(query), alias(key), alias(value)
    hidden = _hidden(q, k, None if atten_mask is None else alias(atten_mask), sparse_mode)
    seed = seed_for(device) >> 1 if keep_prob < 1.0 else 0
    attention = _attend(q, k, v, scale=scale, hidden=hidden, keep=keep_prob, seed=seed)
    scores = _scores(q, k, scale, hidden)
    top = scores.amax(-1, keepdim=True)
    total = (scores - top).exp().sum(-1, keepdim=True)
    fresh = (
        attention,
        top.expand(*top.shape[:-1], 8).contiguous(),
        total.expand(*total.shape[:-1], 8).contiguous(),
        torch.empty(0, dtype=q.dtype),
        torch.tensor(seed),
        torch.tensor(0),
    )
    return tuple(to_device(result, device) for result in fresh)


def fusion_attention_grad(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    dy: torch.Tensor,
    head_num: int,
    input_layout: str,
    *,
    atten_mask: torch.Tensor | None = None,
    scale_value: float = 1.0,
    keep_prob: float = 1.0,
    seed: torch.Tensor | None = None,
    sparse_mode: int = 0,
    pse: torch.Tensor | None = None,
    sink: torch.Tensor | None = None,
    **forward_results: Any,
) -> tuple[torch.Tensor | None, ...]:
    """`npu_fusion_attention_grad_v3`: gradients of query, key and value; nothing for pse and sink."""
    _check_layout(input_layout, {"pse": pse, "sink": sink})
    hidden = _hidden(query, key, None if atten_mask is None else alias(atten_mask), sparse_mode)
    drawn = 0 if seed is None else int(alias(seed).item())

    def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return _attend(q, k, v, scale=scale_value, hidden=hidden, keep=keep_prob, seed=drawn)

    return (*gradients(forward, [query, key, value], dy), None, None)


def lstm_cell(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    cell: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, ...]:
    """`_thnn_fused_lstm_cell`: new hidden state, new cell state, and the activated gates for the gradient."""
    gates = alias(input_gates) + alias(hidden_gates)
    for bias in (input_bias, hidden_bias):
        if bias is not None:
            gates = gates + alias(bias)
    enter, forget, candidate, leave = gates.chunk(4, 1)
    enter, forget, leave = enter.sigmoid(), forget.sigmoid(), leave.sigmoid()
    candidate = candidate.tanh()
    new_cell = forget * alias(cell) + enter * candidate
    workspace = torch.cat((enter, forget, candidate, leave), 1)
    return tuple(to_device(result, cell.device) for result in (leave * new_cell.tanh(), new_cell, workspace))


def lstm_cell_backward(
    grad_hidden: torch.Tensor | None,
    grad_cell: torch.Tensor | None,
    cell: torch.Tensor,
    new_cell: torch.Tensor,
    workspace: torch.Tensor,
    has_bias: bool,
) -> tuple[torch.Tensor | None, ...]:
    """`_thnn_fused_lstm_cell_backward_impl`: gradients of the gates, of the old cell state and of each bias."""
    old, new = alias(cell), alias(new_cell)
    enter, forget, candidate, leave = alias(workspace).chunk(4, 1)
    hidden = torch.zeros_like(new) if grad_hidden is None else alias(grad_hidden)
    squashed = new.tanh()
    flow = hidden * leave * (1 - squashed * squashed)
    if grad_cell is not None:
        flow = flow + alias(grad_cell)
    gates = torch.cat(
        (
            flow * candidate * enter * (1 - enter),
            flow * old * forget * (1 - forget),
            flow * enter * (1 - candidate * candidate),
            hidden * squashed * leave * (1 - leave),
        ),
        1,
    )
    device = cell.device
    bias = to_device(gates.sum(0), device) if has_bias else None
    return to_device(gates, device), to_device(flow * forget, device), bias


def format_cast(tensor: torch.Tensor, *formats: Any, **options: Any) -> torch.Tensor:
    """A copy: the simulated device knows the base format only, which is what torch_npu uses by default."""
    return to_device(alias(tensor), tensor.device)


def format_cast_(tensor: torch.Tensor, *formats: Any, **options: Any) -> torch.Tensor:
    """The tensor itself, in the base format that it has already."""
    return tensor


def dtype_cast(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`_npu_dtype_cast` and its gradient: a copy in another dtype, with the strides kept."""
    return to_device(alias(tensor).to(dtype, copy=True), tensor.device)


KERNELS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "aten::_thnn_fused_lstm_cell": lstm_cell,
        "aten::_thnn_fused_lstm_cell_backward_impl": lstm_cell_backward,
        "npu::npu_fusion_attention_v3": fusion_attention,
        "npu::npu_fusion_attention_grad_v3": fusion_attention_grad,
        "npu::_npu_dtype_cast": dtype_cast,
        "npu::_npu_dtype_cast_backward": dtype_cast,
        "npu::_npu_format_cast": format_cast,
        "npu::_npu_format_cast.aclnn": format_cast,
        "npu::_npu_format_cast.input_dtype": format_cast,
        "npu::npu_format_cast": format_cast,
        "npu::npu_format_cast.Tensor": format_cast,
        "npu::npu_format_cast_": format_cast_,
        "npu::npu_format_cast_.acl_format": format_cast_,
    }
)
"""Hand-written kernels by dispatcher name."""
