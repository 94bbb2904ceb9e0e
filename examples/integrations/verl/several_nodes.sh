#!/usr/bin/env bash
# GRPO on a Ray cluster that runs:  several_nodes.sh ROWS NODES [KEY=VALUE...]
# Before, on the first node: ray start --head; on the others: ray start --address FIRST:6379.
# Every node has the same Python environment with verl and toolgym, and reads ROWS and the databases
# of the tasks at the same paths. Ray brings this folder to each of them.
set -euo pipefail
rows=$(realpath "${1:?name the folder of rows}")
nodes=${2:?say how many nodes there are}; shift 2
cd "$(dirname "$(realpath "$0")")"
train="$rows/data/train-00000-of-00001.parquet"
dev="$rows/data/dev-00000-of-00001.parquet"
python toolgym_agent.py "$train" "$dev"
exec ray job submit --address "${RAY_API:-http://127.0.0.1:8265}" --working-dir "$PWD" -- \
  python -m verl.trainer.main_ppo --config-dir=. --config-name=toolgym_grpo \
  "data.train_files=$train" "data.val_files=$dev" "trainer.nnodes=$nodes" \
  "actor_rollout_ref.rollout.agent.num_workers=$((8 * nodes))" "$@"
