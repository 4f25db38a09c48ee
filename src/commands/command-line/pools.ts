import { Argument, Command } from 'commander';
import { exitCodeOf, outputFlag, withCluster, withLoadBalancer } from './shared-flags.ts';

/** `servicenet pools`, and `pools plan`. */
export function poolsCommand(): Command {
  return withLoadBalancer(withCluster(new Command('pools')))
    .description('show AddressPools, who holds which address, and which Services are waiting')
    .enablePositionalOptions()
    .addOption(outputFlag())
    .action(async (options: Record<string, unknown>) => {
      const { poolsConfig } = await import('../../flags/pools.ts');
      const config = poolsConfig(options);
      const { pools } = await import('../pools.ts');
      await pools(config);
    })
    .addCommand(poolsPlanCommand());
}

function poolsPlanCommand(): Command {
  return withLoadBalancer(withCluster(new Command('plan')))
    .description(
      'show what an edit of AddressPools would do to Services, without making it; exit with 1 if addresses would change',
    )
    .option(
      '-f, --filename <files...>',
      'files with new or changed AddressPools, in YAML or JSON; - for standard input',
    )
    .option('--delete <names...>', 'names of AddressPools to delete')
    .addOption(outputFlag())
    .action(async (options: Record<string, unknown>) => {
      const { poolsPlanConfig } = await import('../../flags/pools.ts');
      const config = poolsPlanConfig(options);
      const { poolsPlan } = await import('../pools.ts');
      process.exitCode = await exitCodeOf(() => poolsPlan(config));
    });
}

/** `servicenet import`. */
export function importCommand(): Command {
  return withCluster(new Command('import'))
    .description("print another load balancer's pools as AddressPools that cover every address in use")
    .addArgument(
      new Argument('<source>', 'the load balancer whose pools to print').choices([
        'metallb',
        'cilium',
        'kube-vip',
      ]),
    )
    .option(
      '--config-map <namespace/name>',
      "ConfigMap of kube-vip's cloud provider (default: kube-system/kubevip), or of MetalLB before 0.13 (default: metallb-system/config)",
    )
    .action(async (source: string, options: Record<string, unknown>) => {
      const { importConfig } = await import('../../flags/pools.ts');
      const config = importConfig({ ...options, source });
      const { importPools } = await import('../pools.ts');
      await importPools(config);
    });
}
