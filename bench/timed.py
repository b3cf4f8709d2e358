"""Runs a command and prints what it took, as JSON: timed.py LOG COMMAND...

It is small, and imports next to nothing: what a parent holds in memory counts as its child's until that one's program
has begun.
"""

import json
import os
import sys
import time

log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
begin = time.perf_counter()
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ,
                        file_actions=[(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)])
_, status, usage = os.wait4(child, 0)
print(json.dumps({"wall_s": time.perf_counter() - begin, "cpu_s": usage.ru_utime + usage.ru_stime,
                  "rss_bytes": usage.ru_maxrss * 1024}))
sys.exit(os.waitstatus_to_exitcode(status) != 0)
