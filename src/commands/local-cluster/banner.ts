import type { UpConfig } from '../../flags/up.ts';
import type { ClientsReport } from './clients.ts';

/** The text of `up` when it is ready: the cluster's contents, and commands to try. */
export function banner(
  config: UpConfig,
  report: ClientsReport,
  serviceTable: string,
  hasNetwork: boolean,
): string {
  const applied = report.applied.map((line) => `  ${line}`);
  return [
    ...poolLine(config, report),
    ...(applied.length === 0 ? [] : ['', 'Applied:', ...applied]),
    '',
    serviceTable,
    'Try it:',
    `  export KUBECONFIG=${config.kubeconfigPath}`,
    ...hints(config, report, hasNetwork),
    '',
    'Stop it with Ctrl-C.',
    '',
  ].join('\n');
}

/** Commands to try, a line each, in paragraphs. */
export function hints(config: UpConfig, report: ClientsReport, hasNetwork: boolean): readonly string[] {
  // Workloads need nodes, and Services of type LoadBalancer a controller that assigns addresses.
  const workload =
    config.nodes === 0
      ? ['  kubectl create service nodeport hello --tcp=80:8080']
      : [
          '  kubectl create deployment web --image=nginx --port=80 --replicas=3',
          '  kubectl expose deployment web --port=80 --type=LoadBalancer',
        ];
  const packets =
    hasNetwork && report.applied.includes('service/storefront')
      ? [
          '',
          'Pods answer, in a network that only servicenet run and --publish lead into:',
          '  servicenet run -- curl -s http://storefront.shop/hostname   # another Pod each time',
          '  servicenet up --publish 8080:shop/storefront:80             # http://127.0.0.1:8080 in a browser',
        ]
      : [];
  return [
    '  kubectl get services --all-namespaces',
    ...workload,
    '  kubectl explain service.spec.ports',
    '  kubectl get services --watch',
    ...packets,
  ];
}

/** Where LoadBalancer Services get their addresses, if that was chosen here. */
function poolLine(config: UpConfig, { addressPool }: ClientsReport): readonly string[] {
  if (config.addressPool !== undefined || addressPool.length === 0) return [];
  const ranges = addressPool.join(' and ');
  return [`addresses of LoadBalancer Services: ${ranges} (for documentation; no interface has them)`];
}
