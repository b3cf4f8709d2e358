#!/bin/sh
# where_cpu_has.sh FLAG COMMAND...: runs the command, or exits 77 (skipped, to ctest) with words on a CPU without FLAG.
flag=$1
shift
if ! grep -qw "$flag" /proc/cpuinfo; then
  echo "skipped: this CPU has no $flag"
  exit 77
fi
exec "$@"
