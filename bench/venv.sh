# shellcheck shell=bash
# Sourced by bench/run, bench/study and bench/growth: makes .venv-bench with what bench/requirements.txt names, and sets PYTHON.
# A torch that scripts/quickstart has already put into .venv is borrowed: it is 4.7 GB.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
BENCH_VENV=$ROOT/.venv-bench
PYTHON=$BENCH_VENV/bin/python

if [[ ! -e $BENCH_VENV/ready || $ROOT/bench/requirements.txt -nt $BENCH_VENV/ready ]]; then
  lender=${HFTA_PYTHON:-$ROOT/.venv/bin/python}
  command -v "$lender" >/dev/null || lender=python3
  [[ -x $PYTHON ]] || "$lender" -m venv "$BENCH_VENV"
  if borrowed=$("$lender" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))' 2>/dev/null); then
    echo "$borrowed" >"$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/borrowed.pth"
  fi
  "$PYTHON" -m pip install --quiet --disable-pip-version-check -r "$ROOT/bench/requirements.txt"
  "$PYTHON" -m pip install --quiet --disable-pip-version-check "ray[tune]==2.60.0" ||
    echo "bench: Ray does not install here, so it is not raced" >&2
  touch "$BENCH_VENV/ready"
fi
