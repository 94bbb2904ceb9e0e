#!/usr/bin/env bash
# GRPO on the GPUs of this machine:  one_node.sh ROWS [KEY=VALUE...]
# ROWS is the folder of `toolgym export rows ENV --for skyrl --out ROWS`, with the splits train and dev.
set -euo pipefail
rows=$(realpath "${1:?name the folder of rows}"); shift
cd "$(dirname "$(realpath "$0")")"
# With SKYRL_PYTHONPATH_EXPORT, SkyRL passes PYTHONPATH on to its Ray processes.
export SKYRL_PYTHONPATH_EXPORT=1 PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
exec python main_toolgym.py \
  "data.train_data=['$rows/data/train-00000-of-00001.parquet']" \
  "data.val_data=['$rows/data/dev-00000-of-00001.parquet']" "$@"
