# shellcheck shell=bash
# Set-up that the scripts share. Sourced, under `set -euo pipefail`.
#
# Every function looks first and does only what is missing, so that a second run costs seconds. A step that fails says
# which one it was and what to do, and the same command goes on from there.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
VENV=$ROOT/.venv
TORCH_VERSION=2.11.0
TORCHVISION_VERSION=0.26.0  # the one that is built for it
# shellcheck disable=SC2034  # used by those who source this
BUILD_PACKAGES=(build-essential cmake ninja-build ccache python3 python3-venv libboost-math-dev libboost-program-options-dev
  libeigen3-dev libfmt-dev liblbfgspp-dev libsqlite3-dev libxsmm-dev libyaml-cpp-dev libzip-dev nlohmann-json3-dev zlib1g-dev)
SANITIZER_PACKAGES=(catch2 clang libclang-rt-dev llvm)  # llvm has the symbolizer, without which a finding has no lines

# ---- Steps: headings, elapsed time, and what to say when one fails ----

STEP_NAME='' STEP_HELP='' STEP_BEGAN=0

finish_step() {
  if [[ -n $STEP_NAME ]]; then printf -- '   %d s\n' $((SECONDS - STEP_BEGAN)); fi
  STEP_NAME=''
}

# step NAME HOW_LONG WHAT_TO_DO_IF_IT_FAILS
step() {
  finish_step
  STEP_NAME=$1 STEP_HELP=$3 STEP_BEGAN=$SECONDS
  printf '\n== %s (%s)\n' "$1" "$2"
}

say() { printf '   %s\n' "$*"; }

# For failures whose cause is known: the step's own advice would only lead astray.
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  STEP_HELP=''
  exit 1
}

report_failure() {
  local code=$?
  if ((code == 0)) || [[ -z $STEP_NAME ]]; then return; fi
  if ((code == 130 || code == 143)); then
    printf '\n%s: interrupted during "%s"; the same command goes on from here.\n' "${0##*/}" "$STEP_NAME" >&2
  else
    printf '\n%s: the step "%s" failed (exit code %d).\n%sThen run the same command again: finished steps are not repeated.\n' \
      "${0##*/}" "$STEP_NAME" "$code" "${STEP_HELP:+$STEP_HELP$'\n'}" >&2
  fi
}
trap report_failure EXIT

# ---- Debian packages ----

missing_packages() {
  local package
  for package; do
    # "ii": wanted and installed; "hi": the same, held.
    [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null) == [hi]i* ]] || printf '%s\n' "$package"
  done
}

as_root() {
  if ((EUID == 0)); then "$@"; else sudo -- "$@"; fi
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  if ((${#missing[@]} == 0)); then
    say 'all there'
    return
  fi
  say "installing: ${missing[*]}"
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    die "needs root for the packages and found no sudo; as root run: apt-get install --no-install-recommends ${missing[*]}"
  fi
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get)
  # Package lists may be absent (a fresh image) or name versions that are gone: only then are they fetched.
  if ! apt-cache show "${missing[@]}" >/dev/null 2>&1; then
    as_root "${apt[@]}" update -qq
  fi
  local install=("${apt[@]}" install -y -qq --no-install-recommends "${missing[@]}")
  if ! as_root "${install[@]}" >/dev/null; then
    say 'trying once more with fresh package lists'
    as_root "${apt[@]}" update -qq
    as_root "${install[@]}" >/dev/null
  fi
}

# The packages that are named, or, where this is no Debian, a word about what is wanted.
ensure_packages() {
  step 'Debian packages' 'about a minute if any are missing' \
    'Is the network there, and are the package sources right (apt-get update)? The packages can also be installed by hand.'
  if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    install_packages "$@"
  else
    say "this system has no apt-get; going on as if these Debian packages, or their like, were there: $*"
  fi
}

# Started by `sudo scripts/...` in a clone that belongs to the one who called: the rest runs as that user, so that no
# file of root's is left in the clone. Call it after the packages; arguments: those of the script.
continue_as_owner() {
  local caller=${SUDO_USER:-root}
  if ((EUID == 0)) && [[ $caller != root && $(stat -c %U "$ROOT") == "$caller" ]]; then
    finish_step
    say "the rest runs as $caller, who owns $ROOT"
    exec sudo -H -u "$caller" --preserve-env=HFTA_TORCH_DIR,HFTA_PYTHON -- "$ROOT/scripts/${0##*/}" "$@"
  fi
}

# ---- Python and LibTorch ----

# Prints a Python that can make virtual environments and for which there are torch wheels.
find_python() {
  local python
  for python in "${HFTA_PYTHON:-}" python3 /usr/bin/python3; do
    if [[ -n $python ]] && "$python" -c 'import sys, venv, ensurepip
sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; then
      printf '%s\n' "$python"
      return
    fi
  done
  die 'found no Python 3.10 to 3.14 with the modules venv and ensurepip; name one by HFTA_PYTHON=/path/to/python3'
}

ensure_venv() {
  if ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
    local python
    python=$(find_python)
    say "making $VENV with $("$python" --version)"
    "$python" -m venv --clear "$VENV"
  fi
}

# ensure_python_packages [--no-deps] NAME[==VERSION] ...: into the virtual environment, those that are missing.
ensure_python_packages() {
  local missing flags=(--quiet --disable-pip-version-check)
  if [[ $1 == --no-deps ]]; then
    flags+=("$1")
    shift
  fi
  missing=$("$VENV/bin/python" - "$@" <<'PY'
import importlib.metadata as metadata
import sys
for wanted in sys.argv[1:]:
    name, _, version = wanted.partition("==")
    try:
        found = metadata.version(name).split("+")[0]
    except metadata.PackageNotFoundError:
        found = None
    if found is None or (version and found != version):
        print(wanted)
PY
  )
  if [[ -n $missing ]]; then
    # shellcheck disable=SC2086  # one word per package
    say 'pip installs:' $missing
    # shellcheck disable=SC2086
    "$VENV/bin/python" -m pip install "${flags[@]}" $missing
  fi
}

# Sets TORCH_DIR, the folder of the Python package torch: HFTA_TORCH_DIR if that is set, else the virtual environment's.
ensure_torch() {
  step 'LibTorch' 'first time: downloads 2.6 GB, takes 4.7 GB of disk and a minute or more' \
    "Check the network and the free disk space. A torch $TORCH_VERSION that is already on this machine can be used: HFTA_TORCH_DIR=.../site-packages/torch"
  if [[ -n ${HFTA_TORCH_DIR:-} ]]; then
    TORCH_DIR=$(realpath -- "$HFTA_TORCH_DIR")
    [[ -e $TORCH_DIR/lib/libtorch_cpu.so ]] || die "HFTA_TORCH_DIR='$HFTA_TORCH_DIR' has no lib/libtorch_cpu.so"
    local found
    found=$(sed -n "s/^__version__ = '\([0-9.]*\).*/\1/p" "$TORCH_DIR/version.py" 2>/dev/null || true)
    [[ $found == "$TORCH_VERSION" ]] || say "warning: torch there is ${found:-of unknown version}, wanted $TORCH_VERSION"
    say "using $TORCH_DIR (HFTA_TORCH_DIR)"
    return
  fi
  ensure_venv
  ensure_python_packages "torch==$TORCH_VERSION" numpy
  # Asked of Python, not guessed: this also sees that what is installed can be loaded.
  TORCH_DIR=$("$VENV/bin/python" -c 'import os, torch; print(os.path.dirname(torch.__file__))')
  say "torch $TORCH_VERSION in $TORCH_DIR"
}

# Python packages that only the tests and the examples need: numpy and torch as a reference, Optuna as a second reader,
# safetensors to read exported weights, torchvision for models to import.
ensure_test_python() {
  step 'Python packages of the tests' 'first time: half a minute' \
    'Check the network; pip needs PyPI, or a mirror of it in its configuration.'
  ensure_venv
  if [[ -n ${HFTA_TORCH_DIR:-} ]]; then
    # The virtual environment borrows that torch, and whatever lies beside it, through a path file.
    dirname -- "$TORCH_DIR" >"$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/hfta_torch.pth"
  fi
  ensure_python_packages numpy optuna optuna-dashboard safetensors pillow
  # Without what it depends on: that is torch, of exactly the version that is there already.
  ensure_python_packages --no-deps "torchvision==$TORCHVISION_VERSION"
  "$VENV/bin/python" -c 'import torch' ||
    die "$VENV/bin/python cannot import torch; with HFTA_TORCH_DIR, HFTA_PYTHON must be a Python of the version it was made for"
  say "in $VENV"
}

# ---- Building ----

# Compiling one file that includes LibTorch takes up to 2 GB.
build_jobs() {
  local cores memory limit
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  if [[ $limit != max ]] && ((limit / 1048576 < memory)); then memory=$((limit / 1048576)); fi
  local jobs=$((memory / 2048 < cores ? memory / 2048 : cores))
  printf '%d\n' $((jobs > 0 ? jobs : 1))
}

cached() { sed -n "s/^$2:[A-Z]*=//p" "$1/CMakeCache.txt" 2>/dev/null || true; }

# configure FOLDER [VARIABLE=VALUE ...]: preset release into FOLDER, unless it is configured so already.
configure() {
  local folder=$1 setting same=1
  shift
  step "Configuring ${folder#"$ROOT/"}" 'a few seconds' \
    "The message above names what is missing. $folder can be deleted and made anew at any time."
  # A clone that was moved or copied takes its old paths along.
  if [[ -f $folder/CMakeCache.txt && $(cached "$folder" CMAKE_HOME_DIRECTORY) != "$ROOT" ]]; then rm -rf -- "$folder"; fi
  for setting in "HFTA_TORCH_DIR=$TORCH_DIR" "$@"; do
    [[ $(cached "$folder" "${setting%%=*}") == "${setting#*=}" ]] || same=0
  done
  if ((same)) && [[ -f $folder/build.ninja ]]; then
    say 'configured already'
    return
  fi
  local flags=("-DHFTA_TORCH_DIR=$TORCH_DIR")
  for setting; do flags+=("-D$setting"); done
  (cd "$ROOT" && cmake --preset release -B "$folder" "${flags[@]}")
}

# build FOLDER HOW_LONG [TARGET ...]
build() {
  local folder=$1 how_long=$2 jobs
  shift 2
  jobs=$(build_jobs)
  step "Building in ${folder#"$ROOT/"}" "$how_long; $jobs jobs" \
    'The compiler'\''s first error is above. "Killed" means too little memory: close something, or add swap.'
  cmake --build "$folder" --parallel "$jobs" ${1:+--target "$@"}
}

# build_sanitized asan|tsan [TARGET ...]: that preset, without LibTorch, whose binaries have no checks in them.
build_sanitized() {
  local preset=$1
  shift
  ensure_packages "${BUILD_PACKAGES[@]}" "${SANITIZER_PACKAGES[@]}"
  step "Configuring build/$preset" 'a few seconds' "The message above names what is missing. build/$preset can be deleted at any time."
  (cd "$ROOT" && cmake --preset "$preset" >/dev/null)
  build "$ROOT/build/$preset" 'first time: some minutes' "$@"
}

# ---- Checks by turns ----

# A number that follows from HEAD, for checks that are too long to be made whole of every commit.
turn_of_head() {
  local commit
  commit=$(git -C "$ROOT" rev-parse HEAD) || die 'needs a git checkout, to know whose turn it is; or give --turn K'
  printf '%d\n' "0x${commit:0:7}"
}
