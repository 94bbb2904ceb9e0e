#!/usr/bin/env bash
# GRPO on the GPUs of this machine:  one_node.sh ROWS [KEY=VALUE...]
# ROWS is the folder that `toolgym export rows ENV --for skyrl --out ROWS` wrote, with train and dev.
set -euo pipefail
rows=$(realpath "${1:?name the folder of rows}"); shift
cd "$(dirname "$(realpath "$0")")"
# SkyRL hands PYTHONPATH on to its Ray processes only if it is asked to.
export SKYRL_PYTHONPATH_EXPORT=1 PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
exec python main_toolgym.py \
  "data.train_data=['$rows/data/train-00000-of-00001.parquet']" \
  "data.val_data=['$rows/data/dev-00000-of-00001.parquet']" "$@"
