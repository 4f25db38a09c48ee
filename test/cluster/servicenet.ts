import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { machines, ranges } from './addresses.ts';
import { kubectl } from './control-plane.ts';

const namespace = 'servicenet-system';

/** The components of `deploy` beside those of the overlay `homelab`. */
export type Component = 'node' | 'dns' | 'policy' | 'router' | 'endpoints' | 'egress';

/**
 * Deploys servicenet as docs/deploying.md and docs/replacing-kube-proxy.md say: the overlay `homelab` with components,
 * the address of the API server, the cluster's range of Pods, and a pool.
 *
 * @param directory where the kustomization is written.
 * @throws {Error} where something is not ready after three minutes.
 */
export function deployServicenet(
  kubeconfig: string,
  directory: string,
  components: readonly Component[],
): void {
  const deploy = join(realpathSync('.'), 'deploy');
  const overlay = join(realpathSync(directory), 'overlay');
  mkdirSync(overlay, { recursive: true });
  const path = (name: string): string => relative(overlay, join(deploy, name));
  const hasNode = components.includes('node');
  const clusterCidr = [
    { op: 'add', path: '/spec/template/spec/containers/0/args/-', value: clusterCidrFlag },
  ];
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: [path('overlays/homelab')],
    components: components.map((name) => path(`components/${name}`)),
    patches: hasNode
      ? [{ target: { kind: 'DaemonSet', name: 'servicenet-node' }, patch: JSON.stringify(clusterCidr) }]
      : [],
  };
  writeFileSync(join(overlay, 'kustomization.yaml'), JSON.stringify(kustomization));
  const call = (...words: string[]): string => kubectl(kubeconfig, words);
  call('create', 'namespace', namespace);
  const server = [`KUBERNETES_SERVICE_HOST=${machines.cp.ipv4}`, 'KUBERNETES_SERVICE_PORT=6443'];
  const literals = server.map((text) => `--from-literal=${text}`);
  call(...['--namespace', namespace, 'create', 'configmap', 'servicenet-node'], ...literals);
  call('apply', '--server-side', '--kustomize', overlay);
  call('wait', '--for=condition=Established', 'crd/addresspools.servicenet.dev', '--timeout=60s');
  const pool = {
    apiVersion: 'servicenet.dev/v1alpha1',
    kind: 'AddressPool',
    metadata: { name: 'home' },
    spec: { addresses: ranges.loadBalancers },
  };
  kubectl(kubeconfig, ['apply', '-f', '-'], JSON.stringify(pool));
  for (const part of call('get', 'daemonsets,deployments', ...everywhere)
    .trim()
    .split('\n')) {
    const [where = '', name = ''] = part.split(' ');
    call('--namespace', where, 'rollout', 'status', name, '--timeout=180s');
  }
}

const clusterCidrFlag = `--cluster-cidr=${ranges.pods.join(',')}`;

const everywhere = [
  '--all-namespaces',
  '--output=jsonpath={range .items[*]}{.metadata.namespace}{" "}{.kind}/{.metadata.name}{"\\n"}{end}',
];
