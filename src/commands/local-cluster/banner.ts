import type { UpConfig } from '../../flags/up.ts';
import type { ClusterNetwork } from '../../emulation/cluster-network.ts';
import { quoted } from '../own-command.ts';
import type { ClientsReport } from './clients.ts';

/** The text of `up` when it is ready: the cluster's contents, and commands to try. */
export function banner(
  config: UpConfig,
  report: ClientsReport,
  serviceTable: string,
  hints: Hints,
  network: Pick<ClusterNetwork, 'commandsObstacle'> | undefined,
  pageLine: string | undefined,
): string {
  const applied = report.applied.map((line) => `  ${line}`);
  const [first = [], ...others] = hints.paragraphs;
  return [
    ...poolLine(config, report),
    ...(network === undefined ? [] : [commandsLine(config, network)]),
    ...(applied.length === 0 ? [] : ['', 'Applied:', ...applied]),
    '',
    serviceTable,
    ...(pageLine === undefined ? [] : [pageLine, '']),
    'Try it:',
    `  ${hints.exportLine}`,
    ...first,
    ...others.flatMap((lines) => ['', ...lines]),
    '',
    'Stop it with Ctrl-C.',
    '',
  ].join('\n');
}

/** Commands to try: each works as it stands, in another terminal and the folder in which `up` was started. */
export interface Hints {
  /** Makes kubectl talk to this server. */
  readonly exportLine: string;
  /** Commands are indented, and fit into 80 columns where the paths do; other lines say what they are for. */
  readonly paragraphs: readonly (readonly string[])[];
}

/** @param command begins command lines of this program. */
export function hintsFor(
  config: Pick<UpConfig, 'kubeconfigPath' | 'nodes'>,
  report: Pick<ClientsReport, 'applied'>,
  hasNetwork: boolean,
  command: string,
): Hints {
  // Workloads need nodes, and Services of type LoadBalancer a controller that assigns addresses.
  const workload =
    config.nodes === 0
      ? ['  kubectl create service nodeport hello --tcp=80:8080']
      : [
          '  kubectl create deployment web --image=nginx --port=80 --replicas=3',
          '  kubectl expose deployment web --port=80 --type=LoadBalancer',
        ];
  const packets = [
    [
      'Pods answer, in a network of their own. From another Pod of it:',
      `  ${command} run -- curl -s http://storefront.shop/hostname`,
    ],
    [
      // Not 8080, where kubectl looks for a server without a kubeconfig.
      'From this machine, in a browser at http://127.0.0.1:8000:',
      '  kubectl -n shop port-forward service/storefront 8000:80',
    ],
  ];
  return {
    exportLine: `export KUBECONFIG=${quoted(config.kubeconfigPath)}`,
    paragraphs: [
      [
        '  kubectl get services --all-namespaces',
        ...workload,
        '  kubectl explain service.spec.ports',
        '  kubectl get services --watch',
      ],
      ...(hasNetwork && report.applied.includes('service/storefront') ? packets : []),
    ],
  };
}

/** Whether commands of containers run in the cluster network, and why not. */
export function commandsLine(
  { containers }: Pick<UpConfig, 'containers'>,
  { commandsObstacle }: Pick<ClusterNetwork, 'commandsObstacle'>,
): string {
  if (containers === 'processes')
    return 'commands of containers: programs of this machine, which read what you can read';
  const why = containers === 'off' ? '--containers=off' : commandsObstacle;
  return why === ''
    ? 'commands of containers: programs of this machine, which see no other file of it'
    : `commands of containers: built-in ones alone (${why})`;
}

/** Where LoadBalancer Services get their addresses, if that was chosen here. */
function poolLine(config: UpConfig, { addressPool }: ClientsReport): readonly string[] {
  if (config.addressPool !== undefined || addressPool.length === 0) return [];
  const ranges = addressPool.join(' and ');
  return [`addresses of LoadBalancer Services: ${ranges} (for documentation; no interface has them)`];
}
