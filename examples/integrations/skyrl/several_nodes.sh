#!/usr/bin/env bash
# GRPO on a Ray cluster that runs:  several_nodes.sh ROWS NODES [KEY=VALUE...]
# Before, on the first node: ray start --head; on the others: ray start --address FIRST:6379.
# Every node has the same Python environment with skyrl and toolgym, and reads ROWS and the databases
# of the tasks at the same paths. Ray brings this folder to each of them. NODES times eight GPUs.
set -euo pipefail
rows=$(realpath "${1:?name the folder of rows}")
nodes=${2:?say how many nodes there are}; shift 2
cd "$(dirname "$(realpath "$0")")"
exec ray job submit --address "${RAY_API:-http://127.0.0.1:8265}" --working-dir "$PWD" -- \
  python main_toolgym.py \
  "data.train_data=['$rows/data/train-00000-of-00001.parquet']" \
  "data.val_data=['$rows/data/dev-00000-of-00001.parquet']" \
  "trainer.placement.policy_num_nodes=$nodes" "trainer.placement.ref_num_nodes=$nodes" \
  "generator.inference_engine.num_engines=$((8 * nodes))" "$@"
