/** kube-proxy, CoreDNS and MetalLB, in whose places servicenet is otherwise: the baseline that its results are compared with. */
import { join } from 'node:path';
import { ranges } from './addresses.ts';
import { kubectl } from './control-plane.ts';
import { coreDnsImage } from './images.ts';
import type { Node } from './node.ts';
import { start, until } from './processes.ts';
import { metalLbModule, moduleFolder, program } from './programs.ts';

/** The words of kube-proxy in its nftables mode. */
export function kubeProxyWords(kubeconfig: string, node: string): readonly [string, ...string[]] {
  return [
    program('kube-proxy'),
    ...[`--kubeconfig=${kubeconfig}`, '--proxy-mode=nftables'],
    ...[`--cluster-cidr=${ranges.pods.join(',')}`, `--hostname-override=${node}`],
    // The table of connections is the machine's.
    ...['--conntrack-max-per-core=0', '--conntrack-tcp-timeout-established=0'],
    '--conntrack-tcp-timeout-close-wait=0',
  ];
}

/** kube-proxy on every node. */
export function startKubeProxy(nodes: readonly Node[], pki: string, logs: string): void {
  for (const node of nodes) {
    const words = kubeProxyWords(join(pki, 'kube-proxy.conf'), node.name);
    start(logs, `kube-proxy-${node.name}`, [...node.words, ...words]);
  }
}

const corefile = `.:1053 {
    errors
    health :8080 {
       lameduck 5s
    }
    ready :8181
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30
    loadbalance
}
`;

/** CoreDNS with kubeadm's Corefile and rights. */
export function deployCoreDns(kubeconfig: string): void {
  const metadata = { name: 'coredns', namespace: 'kube-system' };
  const labels = { 'k8s-app': 'kube-dns' };
  const rules = [
    {
      apiGroups: [''],
      resources: ['endpoints', 'services', 'pods', 'namespaces'],
      verbs: ['list', 'watch'],
    },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
  ];
  const container = {
    name: 'coredns',
    image: coreDnsImage,
    imagePullPolicy: 'Never',
    args: ['-conf', '/etc/coredns/Corefile'],
    volumeMounts: [{ name: 'config', mountPath: '/etc/coredns' }],
    readinessProbe: { httpGet: { path: '/ready', port: 8181 } },
    livenessProbe: { httpGet: { path: '/health', port: 8080 }, initialDelaySeconds: 60 },
  };
  const rbac = 'rbac.authorization.k8s.io';
  const items = [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: 'system:coredns' }, rules },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'system:coredns' },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'system:coredns' },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { Corefile: corefile } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: 'coredns',
            dnsPolicy: 'Default',
            containers: [container],
            volumes: [{ name: 'config', configMap: { name: 'coredns' } }],
          },
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'kube-dns', namespace: 'kube-system', labels },
      spec: {
        clusterIP: ranges.dns,
        selector: labels,
        ports: [
          { name: 'dns', port: 53, protocol: 'UDP', targetPort: 1053 },
          { name: 'dns-tcp', port: 53, protocol: 'TCP', targetPort: 1053 },
        ],
      },
    },
  ];
  kubectl(kubeconfig, ['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  kubectl(kubeconfig, ['-n', 'kube-system', 'rollout', 'status', 'deployment/coredns', '--timeout=180s']);
}

/** MetalLB by its own manifests, with its own BGP and a pool that is announced by layer 2. */
export async function deployMetalLb(kubeconfig: string): Promise<void> {
  const call = (words: readonly string[], input?: string): string => kubectl(kubeconfig, words, input);
  const native = join(moduleFolder('metallb-controller', metalLbModule), 'config/native');
  call(['apply', '--server-side', '--kustomize', native]);
  const namespace = 'metallb-system';
  for (const each of ['deployment/controller', 'daemonset/speaker'])
    call(['--namespace', namespace, 'rollout', 'status', each, '--timeout=180s']);
  const api = { apiVersion: 'metallb.io/v1beta1', metadata: { name: 'lan', namespace } };
  const items = [
    { ...api, kind: 'IPAddressPool', spec: { addresses: ranges.loadBalancers } },
    { ...api, kind: 'L2Advertisement' },
  ];
  // Its webhook answers a moment after the controller is ready.
  await until('the pool of MetalLB', 60, () => {
    call(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    return true;
  });
}
