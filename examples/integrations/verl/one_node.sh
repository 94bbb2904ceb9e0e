#!/usr/bin/env bash
# GRPO on the GPUs of this machine:  one_node.sh ROWS [KEY=VALUE...]
# ROWS is the folder of `toolgym export rows ENV --for verl --out ROWS`, with the splits train and dev.
set -euo pipefail
rows=$(realpath "${1:?name the folder of rows}"); shift
cd "$(dirname "$(realpath "$0")")"
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
train="$rows/data/train-00000-of-00001.parquet"
dev="$rows/data/dev-00000-of-00001.parquet"
python toolgym_agent.py "$train" "$dev"
exec python -m verl.trainer.main_ppo --config-dir="$PWD" --config-name=toolgym_grpo \
  "data.train_files=$train" "data.val_files=$dev" "$@"
