import { Command, Option } from 'commander';
import { exitCodeOf, outputFlag, withCluster } from './shared-flags.ts';

/** `servicenet audit`. */
export function auditCommand(): Command {
  return withCluster(new Command('audit'))
    .description(
      'report cluster IPs and node ports that are duplicate, leaked or out of range; exit with 1 if there are any',
    )
    .option('--service-node-port-range <range>', "the API server's range of node ports", '30000-32767')
    .addOption(outputFlag())
    .action(async (options: Record<string, unknown>) => {
      const { auditConfig } = await import('../../flags/reports.ts');
      const config = auditConfig(options);
      const { audit } = await import('../audit.ts');
      process.exitCode = await exitCodeOf(() => audit(config));
    });
}

/** `servicenet trace`. */
export function traceCommand(): Command {
  return withCluster(new Command('trace'))
    .description(
      'say where a connection goes, through DNS, Services, NetworkPolicies and EgressFirewalls; exit with 0 if it arrives, 1 if not, 2 if objects do not tell',
    )
    .argument('[source]', 'pod/NAMESPACE/NAME, node/NAME, outside or an address')
    .argument(
      '[destination]',
      'svc/NAMESPACE/NAME:PORT, pod/NAMESPACE/NAME:PORT, node/NAME:PORT, outside:PORT, an address or a name',
    )
    .option('-n, --namespace <name>', 'namespace of names without one, and of --matrix', 'default')
    .addOption(new Option('--protocol <protocol>', 'protocol').choices(['TCP', 'UDP', 'SCTP']).default('TCP'))
    .option(
      '--check',
      'open a real connection in the cluster network of up too, and say where it differs; then 2 also says that',
      false,
    )
    .option('--matrix', 'print who reaches whom in the namespace', false)
    .option('--port <number>', 'port of --matrix')
    .option(
      '--outside-address <addresses>',
      'addresses of a machine outside, one of each family',
      '203.0.113.1,2001:db8::1',
    )
    .option('--cluster-cidr <cidrs>', "ranges of Pods (default: kube-proxy's, then those of the Nodes)")
    .option('--masquerade-all', "as the flag of kube-proxy (default: kube-proxy's, then off)")
    .option('--nodeport-addresses <cidrs>', "CIDRs, or primary (default: kube-proxy's, then primary)")
    .addOption(
      new Option('-o, --output <format>', 'output format')
        .choices(['table', 'wide', 'json'])
        .default('table'),
    )
    .action(
      async (
        source: string | undefined,
        destination: string | undefined,
        options: Record<string, unknown>,
      ) => {
        const { traceConfig } = await import('../../flags/reports.ts');
        const config = traceConfig(
          options,
          [source, destination].filter((each) => each !== undefined),
        );
        const { trace } = await import('../trace/trace.ts');
        process.exitCode = await exitCodeOf(() => trace(config));
      },
    );
}

/** `servicenet top`. */
export function topCommand(): Command {
  return withCluster(new Command('top'))
    .description('show Services, pools and Events live; without a terminal, print changes as lines')
    .option('-n, --namespace <name>', 'show only Services and Events of this namespace')
    .action(async (options: Record<string, unknown>) => {
      const { topConfig } = await import('../../flags/reports.ts');
      const config = topConfig(options);
      const { top } = await import('../top/view.ts');
      await top(config);
    });
}
