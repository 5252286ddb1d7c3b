#!/bin/bash
# A GPT of 1.3 billion parameters with Megatron-LM, on four nodes of eight GPUs.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=4
TP=2
CHECKPOINTS=$1
DATA=$2

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
)
MODEL_ARGS=(
    --num-layers 24
    --hidden-size 2048
    --num-attention-heads 16
    --seq-length 2048
    --max-position-embeddings 2048
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --vocab-size 50257   # GPT-2's
)
PARALLEL_ARGS=(
    --tensor-model-parallel-size $TP
    --sequence-parallel
    --use-distributed-optimizer
    --overlap-grad-reduce
    --overlap-param-gather
)
TRAINING_ARGS=(
    --micro-batch-size 4
    --global-batch-size $((16 * NUM_NODES * GPUS_PER_NODE / TP))
    --train-iters 100000
    --bf16
    --lr 2.0e-4
    --lr-decay-style cosine
    --clip-grad 1.0
)

torchrun "${DISTRIBUTED_ARGS[@]}" pretrain_gpt.py \
    "${MODEL_ARGS[@]}" "${PARALLEL_ARGS[@]}" "${TRAINING_ARGS[@]}" \
    --data-path $DATA --save $CHECKPOINTS --save-interval 1000
