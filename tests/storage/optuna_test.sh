#!/usr/bin/env bash
# optuna_test.sh PYTHON STORAGE_SAMPLE: a store that our code writes and reads, through Optuna's eyes.
set -euo pipefail
python=$1 sample=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT

"$sample" write "$folder/sample.db" sample
"$sample" report "$folder/sample.db" sample >"$folder/report.json"
"$sample" write_front "$folder/front.db" front
"$python" "$here/optuna_front_check.py" "$folder/front.db" front "$sample"
"$python" "$here/optuna_check.py" "$folder/sample.db" sample "$folder/report.json" --reread "'$sample' report {store} {study}"
