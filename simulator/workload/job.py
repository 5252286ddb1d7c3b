"""What is to be trained: batch, sequence length, precision, optimizer, tokens."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from simulator.files import FileRecord
from simulator.hardware.accelerator import Dtype


class Optimizer(StrEnum):
    """The optimizer; its value names the state it keeps a parameter."""

    ADAM = "adam"
    SGD_MOMENTUM = "sgd-momentum"
    SGD = "sgd"

    @property
    def states(self) -> int:
        """fp32 numbers kept for each parameter, beside the master weight."""
        return {Optimizer.ADAM: 2, Optimizer.SGD_MOMENTUM: 1, Optimizer.SGD: 0}[self]


class TrainingJob(FileRecord):
    """One training job, apart from the model, the machine and the layout."""

    global_batch_size: int = Field(ge=1, le=10**7)
    """Sequences a step, over all ranks."""
    seq_length: int = Field(ge=1, le=10**7)
    """Tokens a sequence."""
    precision: Dtype = Dtype.BF16
    """Of the matrix products."""
    optimizer: Optimizer = Optimizer.ADAM
    tokens: int | None = Field(default=None, ge=1)
    """Tokens of the whole run; None where only a step is asked for."""
    stack: str = "megatron-core"
    """A shipped stack or a .toml file: the software that runs it."""
    make_vocab_size_divisible_by: int = Field(default=128, ge=1, le=2**20)
    """The vocabulary is padded to a multiple of this x tp, as Megatron-LM does."""

    @property
    def tokens_per_step(self) -> int:
        """Tokens of one step."""
        return self.global_batch_size * self.seq_length
