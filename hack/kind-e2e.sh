#!/usr/bin/env bash
# Runs the e2e suite against a kind cluster: makes the cluster, loads the image, deploys deploy/overlays/kind and the
# router, asks a Pod through that, runs test/e2e through its kubeconfig, collects logs, and deletes the cluster again.
#
#   hack/kind-e2e.sh [ipv4|ipv6|dual] [kube-proxy|servicenet|layer2]
#
# The second word says who carries the traffic of Services. With servicenet the cluster has no kube-proxy: the node agent
# is deployed too (deploy/overlays/kind-node). With layer2 kube-proxy does, and the nodes announce the address of a Service on
# Docker's network, where this script asks it before and after its node is cordoned (deploy/overlays/kind-announce).
#
#   KIND_NODE_IMAGE  the node image; default: kind's own
#   NODE_DIGEST      pins the image's base: see Dockerfile
#   ARTIFACTS        where logs go; default: ./artifacts
#   KEEP_CLUSTER=1   leaves the cluster for a look at it
#
# Needs docker, kind, kubectl and npm; with layer2 curl too. kind's node images cannot be fetched where this repository is developed: there it
# ran with Docker and a stand-in for kind (docs/deploying.md), and test/integration/kind-script.test.ts runs it without
# either. .github/workflows/kind.yaml runs it as it is.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  echo "usage: $0 [ipv4|ipv6|dual] [kube-proxy|servicenet|layer2]" >&2
  exit 2
}

family="${1:-ipv4}"
proxy="${2:-kube-proxy}"
case "$family" in
  ipv4 | ipv6 | dual) ;;
  *) usage ;;
esac
case "$proxy" in
  kube-proxy) mode=iptables overlay=kind ;;
  servicenet) mode=none overlay=kind-node ;;
  layer2) mode=iptables overlay=kind-announce ;;
  *) usage ;;
esac
tools=(docker kind kubectl npm)
[ "$proxy" != layer2 ] || tools+=(curl)
for tool in "${tools[@]}"; do
  command -v "$tool" >/dev/null || {
    echo "$0: needs $tool" >&2
    exit 2
  }
done

cluster="servicenet-e2e-$family"
case "$proxy" in
  servicenet) cluster="$cluster-node" ;;
  layer2) cluster="$cluster-layer2" ;;
esac
artifacts="${ARTIFACTS:-$PWD/artifacts}"
work="$(mktemp -d)"
export KUBECONFIG="$work/kubeconfig"

finish() {
  status=$?
  mkdir -p "$artifacts"
  kind export logs --name "$cluster" "$artifacts/$cluster" || true
  kubectl get pods,services,endpointslices,addresspools,events --all-namespaces -o wide \
    >"$artifacts/$cluster-objects.txt" 2>&1 || true
  if [ "${KEEP_CLUSTER:-}" = 1 ]; then
    echo "kept: kind get kubeconfig --name $cluster"
  else
    kind delete cluster --name "$cluster" || true
  fi
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT

cat >"$work/kind.yaml" <<EOF
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
networking:
  ipFamily: $family
  # Not ::1 for IPv6 either: not every Docker forwards it.
  apiServerAddress: 127.0.0.1
  kubeProxyMode: $mode
nodes:
  - role: control-plane
  - role: worker
EOF

docker build ${NODE_DIGEST:+--build-arg "NODE_DIGEST=$NODE_DIGEST"} -t servicenet:e2e .
kind create cluster --name "$cluster" --config "$work/kind.yaml" --wait 120s \
  ${KIND_NODE_IMAGE:+--image "$KIND_NODE_IMAGE"}
kind load docker-image servicenet:e2e --name "$cluster"
kubectl apply --server-side -k "deploy/overlays/$overlay"
kubectl wait --for=condition=Established crd/addresspools.servicenet.dev --timeout=60s
if [ "$proxy" = servicenet ]; then
  # Until the agents run, no Service leads anywhere: they reach the API server by the name of its node.
  kubectl -n servicenet-system create configmap servicenet-node \
    --from-literal="KUBERNETES_SERVICE_HOST=$cluster-control-plane" --from-literal=KUBERNETES_SERVICE_PORT=6443
  kubectl -n servicenet-system rollout status daemonset/servicenet-agent --timeout=120s
  # CoreDNS is ready once it has read Services and slices through the cluster IP of the API server.
  kubectl -n kube-system rollout status deployment/coredns --timeout=120s
fi
kubectl -n servicenet-system rollout status deployment/servicenet --timeout=120s

# announcer NOT: waits until a node announces the Service's address that is not NOT, and prints its name.
announcer() {
  local second message node
  for second in $(seq 60); do
    message="$(kubectl -n kube-system get service layer2 -o \
      'jsonpath={.status.conditions[?(@.type=="servicenet.dev/Announced")].message}')"
    node="$(sed -n 's/^[^ ;]* by \([^ ]*\) on .*/\1/p' <<<"$message")"
    if [ -n "$node" ] && [ "$node" != "$1" ]; then
      echo "$node"
      return
    fi
    [ "$second" = 60 ] || sleep 1
  done
  echo "$0: no node announces the address: $message" >&2
  return 1
}

if [ "$proxy" = layer2 ]; then
  kubectl -n servicenet-system rollout status daemonset/servicenet-agent --timeout=120s
  # kubeadm keeps the control plane out of load balancing; with one worker there would be nowhere to move to.
  kubectl label nodes --all node.kubernetes.io/exclude-from-external-load-balancers-
  subnets="$(docker network inspect kind --format '{{range .IPAM.Config}}{{println .Subnet}}{{end}}')"
  if [ "$family" = ipv6 ]; then
    pool="$(sed -n 's|^\(.*::\)/.*|\1ff00/120|p' <<<"$subnets" | head -1)"
  else
    pool="$(sed -n 's|^\([0-9]*\.[0-9]*\)\..*|\1.255.192/27|p' <<<"$subnets" | head -1)"
  fi
  kubectl apply -f - <<EOF
apiVersion: servicenet.dev/v1alpha1
kind: AddressPool
metadata:
  name: layer2
spec:
  addresses: ['$pool']
EOF
  # Pods that the image of the nodes has, and that no NetworkPolicy keeps clients from outside away from.
  kubectl -n kube-system expose deployment coredns --name layer2 --type LoadBalancer --port 80 --target-port 8181
  kubectl -n kube-system wait service/layer2 --for='jsonpath={.status.loadBalancer.ingress[0].ip}' --timeout=60s
  address="$(kubectl -n kube-system get service layer2 -o 'jsonpath={.status.loadBalancer.ingress[0].ip}')"
  case "$address" in *:*) address="[$address]" ;; esac
  first="$(announcer nobody)"
  curl -fsS --retry 20 --retry-delay 1 --retry-all-errors --max-time 2 "http://$address/ready"
  kubectl cordon "$first"
  announcer "$first"
  curl -fsS --retry 2 --max-time 2 "http://$address/ready"
  kubectl uncordon "$first"
  kubectl -n kube-system delete service layer2
  kubectl delete addresspool layer2
fi

# The router leads a request of the API server's proxy to a Pod that is here anyway.
kubectl apply --server-side -k deploy/overlays/kind-router
kubectl -n servicenet-system rollout status deployment/servicenet-router --timeout=120s
kubectl -n servicenet-system create ingress e2e --class=servicenet --rule='/healthz=servicenet-metrics:metrics'
router=/api/v1/namespaces/servicenet-system/services/servicenet-router:http/proxy
for second in $(seq 60); do
  if kubectl get --raw "$router/healthz"; then break; fi
  [ "$second" != 60 ] || exit 1
  sleep 1
done
kubectl -n servicenet-system delete ingress e2e

# A fresh cluster has nothing that the audit would find.
npm run --silent servicenet -- audit --kubeconfig "$KUBECONFIG"

SERVICENET_E2E_CONTROLLERS=deployed npm run test:e2e
