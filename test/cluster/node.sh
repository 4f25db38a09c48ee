#!/usr/bin/env bash
# A node: makes the mounts of a machine in new mount, PID, UTS and cgroup namespaces and the network namespace NAME, and
# stays as its first process. With it, all of its processes end and its mounts go.
#
#   node.sh NAME DIRECTORY CNI_PLUGINS DNS_SERVER
set -euo pipefail
name="$1" directory="$2" plugins="$3" dns="$4"

if [ "${5:-}" != inside ]; then
  # Its cgroups are below one of their own, so that they can be taken away with it.
  for controller in /sys/fs/cgroup/*/; do
    [ -e "$controller/cgroup.procs" ] || continue
    mkdir -p "$controller/servicenet-cluster/$name"
    # A cpuset has no processors before it is given them.
    for part in servicenet-cluster "servicenet-cluster/$name"; do
      for key in cpuset.cpus cpuset.mems; do
        [ ! -e "$controller/$key" ] || cat "$controller/$key" >"$controller/$part/$key"
      done
    done
    # All Pods of a node beside what else the machine does.
    [ ! -e "$controller/cpu.shares" ] || echo 8192 >"$controller/servicenet-cluster/$name/cpu.shares"
    echo $$ >"$controller/servicenet-cluster/$name/cgroup.procs"
  done
  exec nsenter --net="/run/netns/$name" unshare --mount --pid --uts --cgroup --fork --kill-child --mount-proc \
    "$0" "$name" "$directory" "$plugins" "$dns" inside
fi

hostname "$name"
mount --make-rshared /
# The sysfs of this network namespace, and the cgroups of this cgroup namespace.
hierarchies="$(cut -d: -f2 /proc/self/cgroup)"
mount -t sysfs sysfs /sys
mount -t tmpfs cgroup /sys/fs/cgroup
for hierarchy in $hierarchies; do
  folder="/sys/fs/cgroup/${hierarchy#name=}"
  mkdir "$folder"
  case "$hierarchy" in
    name=*) mount -t cgroup -o "none,$hierarchy" cgroup "$folder" ;;
    *) mount -t cgroup -o "$hierarchy" cgroup "$folder" ;;
  esac
done

bound() {
  mkdir -p "$directory/$1" "$2"
  mount --bind "$directory/$1" "$2"
}
bound kubelet /var/lib/kubelet
mount --make-rshared /var/lib/kubelet
bound containerd /var/lib/containerd
bound pod-logs /var/log/pods
bound container-logs /var/log/containers
bound cni /var/lib/cni
bound net.d /etc/cni/net.d
bound kubernetes /etc/kubernetes
mkdir -p /opt/cni/bin
mount --bind "$plugins" /opt/cni/bin
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/containerd /run/lock /run/user
mount --bind /run/netns /run/netns
mount --make-shared /run/netns
echo "nameserver $dns" >"$directory/resolv.conf"
resolv="$(readlink -m /etc/resolv.conf)"
mkdir -p "$(dirname "$resolv")"
[ -e "$resolv" ] || touch "$resolv"
mount --bind "$directory/resolv.conf" "$resolv"
# The kubelet writes these where they are others, for the whole machine: it is shown what it wants.
while IFS='=' read -r key value; do
  file="$directory/$(basename "$key")"
  echo "$value" >"$file"
  mount --bind "$file" "/proc/sys/$key"
done <<VALUES
vm/overcommit_memory=1
vm/panic_on_oom=0
kernel/panic=10
kernel/panic_on_oops=1
kernel/keys/root_maxkeys=1000000
kernel/keys/root_maxbytes=25000000
VALUES
touch "$directory/ready"
# bash waits for the orphans of its namespace.
sleep infinity &
wait
