#!/usr/bin/env bash
# part_of.sh PROGRAM [ARGUMENTS]: a Catch2 program, or with HFTA_PART=K/N only each N-th of its tests, from the K-th on
# (K from 0; it may be larger than N, as a number that was drawn is). N runs of one K after the other are the whole.
set -euo pipefail
program=$1
shift
if [[ -z ${HFTA_PART:-} ]]; then exec "$program" "$@"; fi
if ! [[ $HFTA_PART =~ ^([0-9]+)/([1-9][0-9]*)$ ]]; then
  echo "part_of.sh: HFTA_PART is '$HFTA_PART', wanted K/N, for example 0/4" >&2
  exit 2
fi
names=$(mktemp)
trap 'rm -f "$names"' EXIT
# Catch2 says how many tests there are by its exit code, and reads , " [ and \ in names as signs of its own.
{ "$program" --list-test-names-only '~[.]' || true; } |
  awk -v k="$((10#${BASH_REMATCH[1]} % 10#${BASH_REMATCH[2]}))" -v n="${BASH_REMATCH[2]}" 'NF && i++ % n == k' | sed 's/[\\,"[]/\\&/g' >"$names"
echo "part $HFTA_PART: $(wc -l <"$names") tests of ${program##*/}"
if [[ ! -s $names ]]; then exit 0; fi  # an empty list would mean all
# A part takes a minute or two; one that hangs must not take CI's hour. With -w NoTests a name that is not found is red.
timeout --verbose 900 "$program" "$@" --input-file "$names"
