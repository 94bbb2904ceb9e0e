#!/usr/bin/env bash
# GRPO on a running Ray cluster of NODES nodes with eight GPUs each:
#     several_nodes.sh ROWS NODES [KEY=VALUE...]
# Start the cluster with `ray start --head` on the first node and `ray start --address FIRST:6379` on
# the others. Every node needs the same Python environment with skyrl and toolgym, and ROWS and the
# databases at the same paths. Ray copies this folder to every node.
set -euo pipefail
rows=$(realpath "${1:?name the folder of rows}")
nodes=${2:?give the number of nodes}; shift 2
cd "$(dirname "$(realpath "$0")")"
exec ray job submit --address "${RAY_API:-http://127.0.0.1:8265}" --working-dir "$PWD" -- \
  python main_toolgym.py \
  "data.train_data=['$rows/data/train-00000-of-00001.parquet']" \
  "data.val_data=['$rows/data/dev-00000-of-00001.parquet']" \
  "trainer.placement.policy_num_nodes=$nodes" "trainer.placement.ref_num_nodes=$nodes" \
  "generator.inference_engine.num_engines=$((8 * nodes))" "$@"
