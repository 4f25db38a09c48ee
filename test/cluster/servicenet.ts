import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { machines, ranges } from './addresses.ts';
import { kubectl } from './control-plane.ts';
import { onMachine, run } from './processes.ts';
import { program } from './programs.ts';

const namespace = 'servicenet-system';

/** The components of `deploy` beside those of the overlay `homelab`. */
const componentNames = ['node', 'dns', 'policy', 'flows', 'router', 'endpoints', 'egress'] as const;
export type Component = (typeof componentNames)[number];

/** Reads the names of components, between commas. @throws {Error} for a name that is none. */
export function readComponents(text: string): readonly Component[] {
  return text.split(',').map((name) => {
    const found = componentNames.find((each) => each === name);
    if (found === undefined) throw new Error(`--components: no "${name}": of ${componentNames.join(', ')}`);
    return found;
  });
}

/** What kube-controller-manager does not run beside the component `endpoints`, as its kustomization says. */
export const endpointsControllers = [
  'endpoints-controller',
  'endpointslice-controller',
  'endpointslice-mirroring-controller',
];

/**
 * Deploys servicenet as docs/deploying.md and docs/replacing-kube-proxy.md say: the overlay `homelab` with components,
 * the address of the API server, the cluster's range of Pods, and a pool.
 *
 * @param directory where the kustomization is written.
 * @param hasGateways with Gateway API, as docs/gateway-api.md says.
 * @throws {Error} where something is not ready after three minutes.
 */
export function deployServicenet(
  kubeconfig: string,
  directory: string,
  components: readonly Component[],
  hasGateways: boolean,
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
      ? [{ target: { kind: 'DaemonSet', name: 'servicenet-agent' }, patch: JSON.stringify(clusterCidr) }]
      : [],
  };
  writeFileSync(join(overlay, 'kustomization.yaml'), JSON.stringify(kustomization));
  const call = (...words: string[]): string => kubectl(kubeconfig, words);
  call('create', 'namespace', namespace);
  const server = [`KUBERNETES_SERVICE_HOST=${machines.cp.ipv4}`, 'KUBERNETES_SERVICE_PORT=6443'];
  const literals = server.map((text) => `--from-literal=${text}`);
  call(...['--namespace', namespace, 'create', 'configmap', 'servicenet-node'], ...literals);
  defineKinds(kubeconfig, components);
  if (hasGateways) {
    call('apply', '--server-side', '--kustomize', join(deploy, 'crds/gateway-api'));
    call(
      'wait',
      '--for=condition=Established',
      'crd/gatewayclasses.gateway.networking.k8s.io',
      '--timeout=60s',
    );
    const spec = { controllerName: 'servicenet.dev/gateway' };
    const kind = { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'GatewayClass' };
    const gatewayClass = { ...kind, metadata: { name: 'servicenet' }, spec };
    kubectl(kubeconfig, ['apply', '-f', '-'], JSON.stringify(gatewayClass));
  }
  call('apply', '--server-side', '--kustomize', overlay);
  addPool(kubeconfig);
}

/**
 * Deploys servicenet with the chart, by helm: what it has of the components. It has no DNS.
 *
 * @throws {Error} where something is not ready after three minutes.
 */
export function deployChart(kubeconfig: string, components: readonly Component[]): void {
  defineKinds(kubeconfig, components);
  const enabled = components.flatMap((name) => (name === 'dns' ? [] : [`${chartValues[name]}=true`]));
  const words = [
    ...['upgrade', '--install', 'servicenet', join(realpathSync('.'), 'deploy/chart')],
    ...['--namespace', namespace, '--create-namespace', '--wait', '--timeout=180s'],
    ...['announce.enabled=true', `node.apiServer.host=${machines.cp.ipv4}`, ...enabled].map(
      (value) => `--set=${value}`,
    ),
    `--set-json=node.extraArgs=${JSON.stringify([clusterCidrFlag])}`,
  ];
  const [nsenter, ...rest] = onMachine('cp');
  run(nsenter, [...rest, program('helm'), `--kubeconfig=${kubeconfig}`, ...words]);
  addPool(kubeconfig);
}

/** The values of the chart that components have. */
const chartValues = {
  node: 'node.enabled',
  policy: 'policy.enabled',
  flows: 'flows.enabled',
  router: 'router.enabled',
  endpoints: 'controllers.endpoints',
  egress: 'announce.egress',
} as const;

/** Adds the pool, and waits until all is ready. */
function addPool(kubeconfig: string): void {
  const call = (...words: string[]): string => kubectl(kubeconfig, words);
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

/** Defines what the components `egress` and `policy` enforce beside Kubernetes' own kinds. */
function defineKinds(kubeconfig: string, components: readonly Component[]): void {
  if (!components.includes('egress') && !components.includes('policy')) return;
  const files = ovnKinds.flatMap((name) => ['-f', join(realpathSync('.'), 'deploy/crds', name)]);
  kubectl(kubeconfig, ['apply', '--server-side', ...files]);
}

const ovnKinds = ['egressips', 'egressqoses', 'egressfirewalls'].map((name) => `k8s.ovn.org_${name}.yaml`);

export const clusterCidrFlag = `--cluster-cidr=${ranges.pods.join(',')}`;

const everywhere = [
  '--all-namespaces',
  '--output=jsonpath={range .items[*]}{.metadata.namespace}{" "}{.kind}/{.metadata.name}{"\\n"}{end}',
];
