#!/usr/bin/env bash
# The LAN, whose bridge is in the network namespace that this runs in, and the namespaces of its machines.
#
#   lan.sh POD_RANGE4 POD_RANGE6 {NAME IPV4 IPV6 [PODS4 PODS6]}...
#
# A machine with Pod ranges is a node; `out` is the gateway.
set -euo pipefail
pods4="$1" pods6="$2"
shift 2

declare -A ipv4 ipv6 range4 range6
names=()
while [ $# -gt 0 ]; do
  name="$1" ipv4["$1"]="$2" ipv6["$1"]="$3"
  names+=("$name")
  shift 3
  case "${1:-}" in
    */*)
      range4["$name"]="$1" range6["$name"]="$2"
      shift 2
      ;;
  esac
done

ip link set lo up
# A bridge of the LAN is a switch: what crosses it is none of netfilter's business.
for key in iptables ip6tables arptables; do
  [ ! -e "/proc/sys/net/bridge/bridge-nf-call-$key" ] || echo 0 >"/proc/sys/net/bridge/bridge-nf-call-$key"
done
ip link add br0 type bridge
ip link set br0 up

within() { ip netns exec "$@"; }

for name in "${names[@]}"; do
  ip netns add "$name"
  ip link add "v-$name" type veth peer name eth0 netns "$name"
  ip link set "v-$name" master br0 up
  ip -n "$name" link set lo up
  within "$name" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 \
    net.ipv4.conf.default.rp_filter=0 net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.eth0.accept_dad=0
  ip -n "$name" link set eth0 up
  ip -n "$name" address add "${ipv4[$name]}/24" dev eth0
  ip -n "$name" address add "${ipv6[$name]}/64" dev eth0 nodad
done

for name in "${names[@]}"; do
  if [ "$name" != out ]; then
    ip -n "$name" route add default via "${ipv4[out]}"
    ip -n "$name" -6 route add default via "${ipv6[out]}"
  fi
  for node in "${!range4[@]}"; do
    [ "$node" != "$name" ] || continue
    ip -n "$name" route add "${range4[$node]}" via "${ipv4[$node]}"
    ip -n "$name" -6 route add "${range6[$node]}" via "${ipv6[$node]}"
  done
done

# What flannel does besides its routes: Pods leave the cluster with the address of their node.
for node in "${!range4[@]}"; do
  within "$node" nft -f - <<RULES
table inet pods-leave {
  chain postrouting {
    type nat hook postrouting priority 100;
    ip saddr $pods4 ip daddr != $pods4 oifname eth0 masquerade
    ip6 saddr $pods6 ip6 daddr != $pods6 oifname eth0 masquerade
  }
}
RULES
done

# A machine behind the gateway: for a client whose address is in no network of the nodes, of which the suite takes a /16.
ip netns add far
ip -n out link add far type veth peer name eth0 netns far
ip -n far link set lo up
ip -n out link set far up
ip -n far link set eth0 up
ip -n out address add 172.31.78.1/24 dev far
ip -n far address add 172.31.78.2/24 dev eth0
ip -n out address add fd78::1/64 dev far nodad
ip -n far address add fd78::2/64 dev eth0 nodad
ip -n far route add default via 172.31.78.1
ip -n far -6 route add default via fd78::1
