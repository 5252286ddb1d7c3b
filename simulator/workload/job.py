"""What is to be trained: batch, sequence length, precision, optimizer, tokens."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from simulator.files import FileRecord
from simulator.hardware.accelerator import Dtype


class Optimizer(StrEnum):
    """The optimizer; `simulator.workload.optimizers` says what each keeps and computes."""

    ADAM = "adam"
    """Adam and AdamW: two states a parameter."""
    ADAM_8BIT = "adam-8bit"
    """Both states in 8 bits, with a scale a block (bitsandbytes, torchao)."""
    MUON = "muon"
    """Momentum, orthogonalised by Newton-Schulz steps, for matrices; Adam for the rest."""
    ADAFACTOR = "adafactor"
    """A factored second moment: a number a row and a column; no momentum."""
    SGD_MOMENTUM = "sgd-momentum"
    """One state a parameter."""
    SGD = "sgd"
    """No state."""


class Recipe(StrEnum):
    """How tensors are scaled to a narrow format, in Transformer Engine's words."""

    DELAYED = "delayed"
    """FP8, one scale a tensor from the maxima of past steps."""
    TENSORWISE = "tensorwise"
    """FP8, one scale a tensor from its own maximum, found first (current scaling)."""
    ROWWISE = "rowwise"
    """FP8, one scale a row from its own maximum (torchao)."""
    BLOCKWISE = "blockwise"
    """FP8, a scale for 1 x 128 activations and 128 x 128 weights (DeepSeek-V3)."""
    MXFP8 = "mxfp8"
    """FP8, a power of two for 32 elements, along rows and again along columns."""
    NVFP4 = "nvfp4"
    """FP4, an FP8 scale for 16 elements and one a tensor; weight gradients by Hadamard."""
    MXFP4 = "mxfp4"
    """FP4, a power of two for 32 elements."""


class Dispatcher(StrEnum):
    """How tokens reach their experts, in Megatron-LM's words."""

    ALL_TO_ALL = "alltoall"
    """NCCL all-to-all of one copy a chosen expert."""
    FLEX = "flex"
    """DeepEP or HybridEP: one copy a node over the network, spread inside the node."""
    ALL_GATHER = "allgather"
    """All tokens are gathered by every expert rank."""


class LoraTarget(StrEnum):
    """A linear layer with an adapter, in Megatron-Bridge's words."""

    QKV = "linear_qkv"
    PROJ = "linear_proj"
    FC1 = "linear_fc1"
    FC2 = "linear_fc2"


class Part(StrEnum):
    """A part of a model whose weights may be frozen."""

    EMBEDDING = "embedding"
    """The table of tokens (and of positions)."""
    ATTENTION = "attention"
    """The linear layers of attention."""
    MLP = "mlp"
    """Dense MLPs, routers and shared experts."""
    EXPERTS = "experts"
    """The routed experts."""
    HEAD = "head"
    """The output projection onto the vocabulary."""


class Lora(FileRecord):
    """Low-rank adapters beside frozen weights; all else is frozen."""

    rank: int = Field(ge=1, le=65536)
    """Rank of the two factors."""
    targets: tuple[LoraTarget, ...] = Field(default=tuple(LoraTarget), min_length=1)
    """Linear layers that get an adapter."""


class Routing(FileRecord):
    """How the tokens of a mixture of experts are spread and sent."""

    dispatcher: Dispatcher = Dispatcher.ALL_TO_ALL
    """How tokens travel to their experts and back."""
    load_imbalance: float = Field(default=1.0, ge=1, le=100)
    """Tokens of the busiest expert rank over the mean; it decides the time of a layer."""
    capacity_factor: float | None = Field(default=None, gt=0, le=100)
    """Each expert takes at most this x its mean share, padded to it (token dropping); None drops
    nothing."""
    dispatch_dtype: Dtype | None = None
    """Of tokens on their way to the experts; None is that of activations."""
    overlap: bool = False
    """Whether the all-to-all runs under the compute of another micro-batch (Megatron-LM
    `--overlap-moe-expert-parallel-comm`, DualPipe); how much of it hides is the stack's
    `overlap.expert_fraction`."""
    aux_loss: bool = True
    """Whether a load-balancing loss is computed."""
    two_step: bool = False
    """Whether the all-to-all of the "alltoall" dispatcher goes inside the scale-up domains first
    and then across them (hierarchical: Tutel, DeepSpeed-MoE)."""


class Dtypes(FileRecord):
    """Number formats that override the stack's; None leaves what the stack does."""

    gradient: Dtype | None = None
    """Of accumulated gradients."""
    reduce: Dtype | None = None
    """Of gradients on the wire (gradient compression)."""
    master: Dtype | None = None
    """Of the optimizer's own copy of the parameters."""
    state: Dtype | None = None
    """Of one optimizer state."""


class TrainingJob(FileRecord):
    """One training job, apart from the model, the machine and the layout."""

    global_batch_size: int = Field(ge=1, le=10**7)
    """Sequences a step, over all ranks."""
    seq_length: int = Field(ge=1, le=10**7)
    """Tokens a sequence."""
    document_length: int | None = Field(default=None, ge=1, le=10**7)
    """Mean tokens of the documents packed into a sequence, which do not see each other; None is
    one document a sequence."""
    precision: Dtype = Dtype.BF16
    """Of the matrix products."""
    recipe: Recipe | None = None
    """How fp8 or fp4 is scaled; None is "delayed" for fp8 and "nvfp4" for fp4."""
    fp8_parameters: bool = False
    """Whether weights are kept and gathered in 8 bits (Megatron-LM `--fp8-param-gather`)."""
    dtypes: Dtypes = Dtypes()
    """Formats of gradients, master copies and states."""
    optimizer: Optimizer = Optimizer.ADAM
    """What updates the parameters."""
    lora: Lora | None = None
    """Adapters to train in the place of the weights."""
    freeze: tuple[Part, ...] = ()
    """Parts that are not trained."""
    powersgd_rank: int | None = Field(default=None, ge=1, le=1024)
    """Rank of gradients compressed by PowerSGD (plain data parallel only)."""
    moe: Routing = Routing()
    """How tokens reach their experts."""
    tokens: int | None = Field(default=None, ge=1)
    """Tokens of the whole run; None where only a step is asked for."""
    stack: str = "megatron-core"
    """A shipped stack or a .toml file: the software that runs it."""
    make_vocab_size_divisible_by: Annotated[int, Field(ge=1, le=2**20)] = 128
    """The vocabulary is padded to a multiple of this x tp, as Megatron-LM does."""

    @property
    def tokens_per_step(self) -> int:
        """Tokens of one step."""
        return self.global_batch_size * self.seq_length

    def trains(self, part: Part) -> bool:
        """Return whether the weights of a part are trained; adapters are no part."""
        return self.lora is None and part not in self.freeze

    @property
    def freezes(self) -> bool:
        """Whether any weight is frozen."""
        return self.lora is not None or bool(self.freeze)

    @property
    def effective_recipe(self) -> Recipe | None:
        """The scaling recipe with the default filled in; None where nothing is scaled."""
        if self.precision is Dtype.FP8:
            return self.recipe or Recipe.DELAYED
        if self.precision is Dtype.FP4:
            return self.recipe or Recipe.NVFP4
        return None
