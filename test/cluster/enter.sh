#!/usr/bin/env bash
# Runs a program on a node of node.sh, in its cgroups and namespaces.
#
#   enter.sh NAME PID PROGRAM...
#
# PID is the first process of the node's namespaces.
set -euo pipefail
name="$1" pid="$2"
shift 2
for procs in /sys/fs/cgroup/*/servicenet-cluster/"$name"/cgroup.procs; do
  echo $$ >"$procs"
done
exec nsenter --target "$pid" --mount --pid --uts --net --cgroup "$@"
