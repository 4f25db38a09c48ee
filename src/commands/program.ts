import { Command, Option } from 'commander';
import { upConfig } from '../config/up.ts';
import { logFormats, logLevels } from '../telemetry/log.ts';
import { version } from '../telemetry/version.ts';

/** The command line. Commands are loaded when they are called: `--help` must not wait for them. */
export function program(): Command {
  const root = new Command('servicenet')
    .description('Kubernetes service networking: a controller, and an embedded API server to run it against')
    .version(version(), '-V, --version')
    .showHelpAfterError()
    .exitOverride();
  root.addCommand(upCommand());
  root
    .command('version')
    .description('print the version')
    .action(() => {
      process.stdout.write(`servicenet ${version()} (API of Kubernetes 1.36, Node.js ${process.version})\n`);
    });
  return root;
}

function upCommand(): Command {
  return new Command('up')
    .description('run an embedded Kubernetes API server for service networking')
    .option('--bind-address <address>', 'listen on this address', '127.0.0.1')
    .option('--port <port>', 'listen on this port; 0 takes any free one', '6443')
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
    .option('--controllers <list>', 'which controllers to run: *, name, -name', '*')
    .addOption(
      new Option('--authorization-mode <mode>', 'who may do what')
        .choices(['AlwaysAllow', 'RBAC'])
        .default('AlwaysAllow'),
    )
    .option('--data-dir <folder>', 'keep the store on disk in this folder (default: in memory)')
    .addOption(
      new Option('--log-level <level>', 'least important lines to print').choices(logLevels).default('warn'),
    )
    .addOption(
      new Option('--log-format <format>', 'default: pretty on a terminal, else json').choices(logFormats),
    )
    .action(async (options: Record<string, unknown>) => {
      const config = upConfig(options, process.stderr.isTTY);
      const { up } = await import('./up.ts');
      await up(config);
    });
}
