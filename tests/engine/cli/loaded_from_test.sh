#!/usr/bin/env bash
# What the loader takes code from: loaded_from_test.sh BUILD COMPILER. No binary of the build or install tree may name the
# current folder in its run path, and no library that lies where the program is started may be run.
set -euo pipefail
build=$1 compiler=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

check_run_paths() {
  local file path element count=0
  while IFS= read -r -d '' file; do
    readelf -h "$file" >/dev/null 2>&1 || continue
    count=$((count + 1))
    path=$(readelf -d "$file" 2>/dev/null | sed -n 's/.*(\(RUNPATH\|RPATH\)).*\[\(.*\)\]$/\2/p')
    [[ -n $path ]] || continue
    while IFS= read -r -d : element; do
      case $element in
        /* | '$ORIGIN' | '$ORIGIN/'*) ;;
        *) echo "$file: found the run path '$path', wanted absolute folders and \$ORIGIN" >&2; status=1; break ;;
      esac
    done <<<"$path:"
  done < <(find "$1" -type f \( -perm -u+x -o -name '*.so*' \) ! -path '*/CMakeFiles/*' ! -path '*/consumer/*' -print0)
  [[ $count -gt 0 ]] || { echo "found no binary in $1" >&2; status=1; }
}

check_run_paths "$build"
if DESTDIR= cmake --install "$build" --prefix "$work/installed" >"$work/install.log" 2>&1; then
  check_run_paths "$work/installed"
else
  echo "not everything is built: the install tree was not looked at"
fi

# Libraries by the names that the program, LibTorch and its CUDA side are known to ask for. Each says that it was run.
mkdir "$work/here"
cat >"$work/trap.c" <<'C'
#include <fcntl.h>
__attribute__((constructor)) static void run(void) { open(MARK, O_CREAT | O_WRONLY, 0600); }
C
"$compiler" -x c -shared -fPIC -DMARK="\"$work/was_run\"" -o "$work/trap.so" "$work/trap.c"
for name in libcuda.so.1 libcuda.so libtorch_cuda.so libtorch_cpu.so libtorch.so libc10.so libc10_cuda.so libgomp.so.1 \
  libhfta_torch.so libhfta_cuda_graphs.so libnvidia-ml.so.1 libnvrtc.so libcudart.so libcudart.so.12 libcudart.so.13 \
  libcupti.so libnvToolsExt.so.1 libcaffe2_nvrtc.so libsqlite3.so.0 libyaml-cpp.so.0.7 libzip.so.4 libstdc++.so.6 \
  libmkl_rt.so libiomp5.so libittnotify.so; do
  cp "$work/trap.so" "$work/here/$name"
done
cat >"$work/here/study.yaml" <<'YAML'
study: s
storage: s.db
method: random
run_cap: 2
metric: {name: val_accuracy, goal: maximize}
parameters: {lr: {distribution: log_uniform_values, min: 1.0e-3, max: 1.0e-1}}
model: {layers: [flatten, {linear: [64, 10]}]}
data: {name: digits, batch_size: 256, validation: 0.2}
train: {epochs: 1, loss: cross_entropy, optimizer: {name: sgd, lr: "${lr}"}}
YAML
cd "$work/here"
export HFTA_CACHE="$work/cache"
for words in "plan study.yaml" "study.yaml" "report --storage s.db" "simulate study.yaml" "study.yaml --device cuda --fresh"; do
  # shellcheck disable=SC2086
  LD_DEBUG=libs LD_DEBUG_OUTPUT="$work/loads" "$build/bin/hfta-tune" $words >"$work/out.log" 2>&1 || true
done
if grep -hE "trying file=([^/]|$work/here)|calling init: ([^/]|$work/here)" "$work"/loads.*; then
  echo "the loader looked in the current folder" >&2
  status=1
fi
[[ ! -e $work/was_run ]] || { echo "a library in the current folder was run" >&2; status=1; }
exit $status
