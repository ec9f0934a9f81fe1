"""Transformers that answer questions about their tokens, GPTs among them, and text generation.

>>> import torch
>>> from attnlib.model import GPT, generate
>>> model = GPT(vocabulary_size=27, length=16, d_model=16, num_heads=4)
>>> model(torch.tensor([[26, 4, 12]])).logits["next"].shape
torch.Size([1, 3, 27])
>>> generate(model, torch.tensor([[26]]), steps=5).shape
torch.Size([1, 6])
"""

from attnlib.model.generation import generate
from attnlib.model.gpt import GPT
from attnlib.model.sizes import TaskSizes
from attnlib.model.transformer import ModelOutput, TransformerModel

__all__ = ["GPT", "ModelOutput", "TaskSizes", "TransformerModel", "generate"]
