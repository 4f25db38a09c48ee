import { Command } from 'commander';
import { selectRemote } from './select-controllers.ts';
import {
  allocationFlag,
  logFormatFlag,
  logLevelFlag,
  withAttachments,
  withCluster,
  withLoadBalancer,
} from './shared-flags.ts';

/** The defaults of durations are kube-controller-manager's. */
export function controllerCommand(): Command {
  return withAttachments(withLoadBalancer(withCluster(new Command('controller'))))
    .description('run the load balancer and other controllers against a cluster')
    .option(
      '--controllers <list>',
      'controllers to run: a list of *, name and -name; * is service-allocation and load-balancer',
      '*',
    )
    .option('--service-selector <selector>', 'write endpoints only for Services with these labels', '')
    .addOption(
      allocationFlag(
        'who allocates cluster IPs and node ports: the API server (service-allocation then audits them), or service-allocation',
      ),
    )
    .option(
      '--service-cluster-ip-range <cidrs>',
      'ranges of cluster IPs, primary family first, for API servers without ServiceCIDRs',
    )
    .option('--service-node-port-range <range>', "the API server's range of node ports", '30000-32767')
    .option(
      '--metrics-bind-address <address>',
      'serve /healthz, /readyz and /metrics on this address; 0 for none',
      ':8080',
    )
    .option('--leader-elect', 'work only while holding the leader election lease', true)
    .option('--no-leader-elect', 'work without a lease; only for a single process')
    .option(
      '--leader-elect-lease-duration <duration>',
      'how long other instances wait before they replace a silent leader',
      '15s',
    )
    .option(
      '--leader-elect-renew-deadline <duration>',
      'how long a leader works without renewing its lease',
      '10s',
    )
    .option(
      '--leader-elect-retry-period <duration>',
      'time between attempts to take or renew the lease',
      '2s',
    )
    .option('--leader-elect-resource-namespace <namespace>', 'namespace of the lease', 'kube-system')
    .option('--leader-elect-resource-name <name>', 'name of the lease', 'servicenet-controller')
    .addOption(logLevelFlag('info'))
    .addOption(logFormatFlag())
    .action(async (options: Record<string, unknown>) => {
      const { controllerConfig } = await import('../../flags/controller.ts');
      const config = controllerConfig(options, process.stderr.isTTY, selectRemote);
      const { controller } = await import('../controller.ts');
      await controller(config);
    });
}
