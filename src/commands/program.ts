import { Argument, Command, Option } from 'commander';
import { defaultPoolRanges } from '../config/default-pool.ts';
import { upConfig } from '../config/up.ts';
import { logFormats, logLevels } from '../telemetry/log.ts';
import { version } from '../telemetry/version.ts';

/** The command line. Commands are loaded when they are called: `--help` must not wait for them. */
export function program(): Command {
  const root = new Command('servicenet')
    .description('Kubernetes service networking: a controller, and an embedded API server to run it against')
    .version(version(), '-V, --version')
    .showHelpAfterError('(--help says what there is)')
    .exitOverride()
    // An option behind a subcommand is the subcommand's, though its parent knows it too (pools, pools plan).
    .enablePositionalOptions();
  const commands = [
    upCommand(),
    controllerCommand(),
    auditCommand(),
    topCommand(),
    poolsCommand(),
    importCommand(),
  ];
  for (const command of commands) {
    root.addCommand(command);
    inherit(command, root);
  }
  root
    .command('version')
    .description('print the version')
    .action(() => {
      process.stdout.write(`servicenet ${version()} (API of Kubernetes 1.36, Node.js ${process.version})\n`);
    });
  return root;
}

/** `addCommand` hands nothing down: a wrong flag would end the process where it is found. */
function inherit(command: Command, parent: Command): void {
  command.copyInheritedSettings(parent);
  for (const nested of command.commands) inherit(nested, command);
}

function upCommand(): Command {
  return new Command('up')
    .description('run an embedded Kubernetes API server for service networking')
    .usage('[options] [-- program...]')
    .argument(
      '[program...]',
      'run this with KUBECONFIG set, and end with its exit code; then any free port is the default',
    )
    .option('--bind-address <address>', 'listen on this address', '127.0.0.1')
    .option('--port <port>', 'listen on this port; 0 takes any free one (default: 6443)')
    .option('--service-cluster-ip-range <cidrs>', 'one CIDR, or two of different families', '10.96.0.0/16')
    .option('--service-node-port-range <range>', 'ports for NodePort Services', '30000-32767')
    .option('--token <token>', "the administrator's bearer token (default: a random one)")
    .option(
      '--write-kubeconfig <file>',
      'write the kubeconfig here, mode 0600 (default: ~/.servicenet/kubeconfig)',
    )
    .option('--apply <files...>', 'apply these YAML or JSON files once ready')
    .option('--nodes <count>', 'simulate so many nodes, and run workloads on them', '3')
    .option('--cluster-cidr <cidrs>', 'addresses of Pods (default: 10.244.0.0/16, fd00:10:244::/56)')
    .option(
      '--default-pool <ranges>',
      'addresses for LoadBalancer Services: CIDRs and ranges; "" for none',
      defaultPoolRanges,
    )
    .option('--controllers <list>', 'which controllers to run: *, name, -name; "" for none', '*')
    .addOption(
      new Option('--authorization-mode <mode>', 'who may do what')
        .choices(['AlwaysAllow', 'RBAC'])
        .default('AlwaysAllow'),
    )
    .option('--no-live-view', 'on a terminal, too, print the introduction and be silent')
    .option('--data-dir <folder>', 'keep the store on disk in this folder (default: in memory)')
    .addOption(allocationFlag())
    .option(
      '--metrics-bind-address <address>',
      'serve health and metrics here, e.g. 127.0.0.1:8080; 0: nowhere',
      '0',
    )
    .addOption(logLevelFlag('warn'))
    .addOption(logFormatFlag())
    .action(async (program: readonly string[], options: Record<string, unknown>) => {
      const config = upConfig(options, process.stderr.isTTY, program);
      const { up } = await import('./up.ts');
      process.exitCode = await up(config);
    });
}

/** The defaults of durations are kube-controller-manager's. */
function controllerCommand(): Command {
  return withLoadBalancer(withCluster(new Command('controller')))
    .description('run controllers of service networking against an API server')
    .option(
      '--controllers <list>',
      'which controllers to run: *, name, -name (* is service-allocation and load-balancer)',
      '*',
    )
    .option('--service-selector <selector>', 'write endpoints only of Services with these labels', '')
    .addOption(allocationFlag())
    .option(
      '--service-cluster-ip-range <cidrs>',
      'addresses of Services, for servers without ServiceCIDRs; primary family first',
    )
    .option('--service-node-port-range <range>', 'ports for NodePort Services', '30000-32767')
    .option(
      '--metrics-bind-address <address>',
      'serve /healthz, /readyz and /metrics here; 0: nowhere',
      ':8080',
    )
    .option('--leader-elect', 'work only while holding the lease', true)
    .option('--no-leader-elect', 'work at once: for a single process')
    .option('--leader-elect-lease-duration <duration>', 'how long others wait for a silent leader', '15s')
    .option('--leader-elect-renew-deadline <duration>', 'how long a leader goes on without a renewal', '10s')
    .option('--leader-elect-retry-period <duration>', 'between tries to take or renew the lease', '2s')
    .option('--leader-elect-resource-namespace <namespace>', 'namespace of the lease', 'kube-system')
    .option('--leader-elect-resource-name <name>', 'name of the lease', 'servicenet-controller')
    .addOption(logLevelFlag('info'))
    .addOption(logFormatFlag())
    .action(async (options: Record<string, unknown>) => {
      const { controllerConfig } = await import('../config/controller.ts');
      const config = controllerConfig(options, process.stderr.isTTY);
      const { controller } = await import('./controller.ts');
      await controller(config);
    });
}

function auditCommand(): Command {
  return withCluster(new Command('audit'))
    .description(
      'report addresses and node ports of Services that are held twice, leaked, or out of range (exit code 1)',
    )
    .option('--service-node-port-range <range>', "the API server's", '30000-32767')
    .addOption(outputFlag())
    .action(async (options: Record<string, unknown>) => {
      const { auditConfig } = await import('../config/audit.ts');
      const config = auditConfig(options);
      const { audit } = await import('./audit.ts');
      process.exitCode = await looked(() => audit(config));
    });
}

function poolsCommand(): Command {
  return withLoadBalancer(withCluster(new Command('pools')))
    .description('show AddressPools, who holds which address, and who waits')
    .enablePositionalOptions()
    .addOption(outputFlag())
    .action(async (options: Record<string, unknown>) => {
      const { poolsConfig } = await import('../config/pools.ts');
      const config = poolsConfig(options);
      const { pools } = await import('./pools.ts');
      await pools(config);
    })
    .addCommand(poolsPlanCommand());
}

function poolsPlanCommand(): Command {
  return withLoadBalancer(withCluster(new Command('plan')))
    .description('say which Services an edit of AddressPools would affect, before it is made')
    .option('-f, --filename <files...>', 'AddressPools as they shall be, in YAML or JSON; -: standard input')
    .option('--delete <names...>', 'AddressPools that shall go')
    .addOption(outputFlag())
    .action(async (options: Record<string, unknown>) => {
      const { poolsPlanConfig } = await import('../config/pools.ts');
      const config = poolsPlanConfig(options);
      const { poolsPlan } = await import('./pools-plan.ts');
      process.exitCode = await looked(() => poolsPlan(config));
    });
}

/** The exit code of a command whose 1 says that there is something to see: as of diff, 2 that nobody could look. */
async function looked(look: () => Promise<0 | 1>): Promise<0 | 1 | 2> {
  try {
    return await look();
  } catch (error) {
    process.stderr.write(`servicenet: ${error instanceof Error ? error.message : String(error)}\n`);
    return 2;
  }
}

function importCommand(): Command {
  return withCluster(new Command('import'))
    .description("print another load balancer's pools as AddressPools, with every address in use")
    .addArgument(new Argument('<source>', 'whose pools').choices(['metallb', 'cilium', 'kube-vip']))
    .option(
      '--config-map <namespace/name>',
      "of kube-vip's cloud provider (default: kube-system/kubevip), or of MetalLB before 0.13 (metallb-system/config)",
    )
    .action(async (source: string, options: Record<string, unknown>) => {
      const { importConfig } = await import('../config/import.ts');
      const config = importConfig({ ...options, source });
      const { importPools } = await import('./import.ts');
      await importPools(config);
    });
}

function withLoadBalancer(command: Command): Command {
  return command
    .option(
      '--lb-class <class>',
      'the loadBalancerClass of Services to serve',
      'servicenet.dev/load-balancer',
    )
    .option('--default-class', 'serve Services without a class too', true)
    .option('--no-default-class', 'leave Services without a class to another load balancer')
    .option('--compat', 'read the annotations of MetalLB, kube-vip, PureLB and Cilium', true)
    .option('--no-compat', 'read our own annotations only');
}

function outputFlag(): Option {
  return new Option('-o, --output <format>', 'how to print').choices(['table', 'json']).default('table');
}

function topCommand(): Command {
  return withCluster(new Command('top'))
    .description('show Services, pools and Events as they change; plain lines where there is no terminal')
    .option('-n, --namespace <name>', 'only Services and Events of this namespace')
    .action(async (options: Record<string, unknown>) => {
      const { topConfig } = await import('../config/top.ts');
      const config = topConfig(options);
      const { top } = await import('./top.ts');
      await top(config);
    });
}

function withCluster(command: Command): Command {
  return command
    .option(
      '--kubeconfig <file>',
      'default: $KUBECONFIG, ~/.kube/config, then the service account of the Pod',
    )
    .option('--context <name>', 'a context of the kubeconfig')
    .option('--server <url>', 'the API server, instead of a kubeconfig')
    .option('--token-file <file>', 'with --server: a file with the bearer token')
    .option('--certificate-authority <file>', 'with --server: a file with the CA of the server (PEM)');
}

function allocationFlag(): Option {
  return new Option('--allocation <who>', 'who gives Services their addresses and node ports')
    .choices(['server', 'controller'])
    .default('server');
}

function logLevelFlag(level: string): Option {
  return new Option('--log-level <level>', 'least important lines to print')
    .choices(logLevels)
    .default(level);
}

function logFormatFlag(): Option {
  return new Option('--log-format <format>', 'default: pretty on a terminal, else json').choices(logFormats);
}
