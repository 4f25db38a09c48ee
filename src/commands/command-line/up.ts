import { Command, Option } from 'commander';
import { containerModes, networkModes, platforms } from '../../flags/up.ts';
import { upConfig } from '../../flags/up.ts';
import { isProgram, programNames } from '../../emulation/containers/images.ts';
import { selectLocal } from './select-controllers.ts';
import { allocationFlag, logFormatFlag, logLevelFlag, withAttachments } from './shared-flags.ts';

/** `servicenet up`. */
export function upCommand(): Command {
  return withAttachments(new Command('up'))
    .description(
      'run a Kubernetes API server with controllers and simulated nodes, for tests and experiments',
    )
    .usage('[options] [-- program...]')
    .argument(
      '[program...]',
      'run this program with KUBECONFIG set, then exit with its exit code; --port then defaults to any free port',
    )
    .option('--bind-address <address>', 'listen on this address', '127.0.0.1')
    .option('--port <port>', 'listen on this port; 0 for any free port (default: 6443)')
    .option(
      '--extra-hosts <list>',
      'names and addresses by which clients also reach the server, for its certificate; requests for other names are refused',
      '',
    )
    .option(
      '--service-cluster-ip-range <cidrs>',
      'range of cluster IPs: one CIDR, or two of different families',
      '10.96.0.0/16',
    )
    .option('--service-node-port-range <range>', 'range of node ports', '30000-32767')
    .option(
      '--token <token>',
      "the administrator's bearer token, at least 8 characters (default: a random one)",
    )
    .option(
      '--write-kubeconfig <file>',
      'write the kubeconfig to this file, with mode 0600 (default: ~/.servicenet/kubeconfig)',
    )
    .option('--apply <files...>', 'apply these YAML or JSON files when the server is ready')
    .option('--nodes <count>', 'number of simulated nodes; with 0, no workloads run', '3')
    .addOption(
      new Option(
        '--network <mode>',
        'put Pods into a network, so that they answer; auto: where this machine can make one (Linux, iproute2, user namespaces or root; nftables, else Services are forwarded in userspace)',
      )
        .choices(networkModes)
        .default('auto'),
    )
    .addOption(
      new Option(
        '--containers <mode>',
        'processes: run the commands of containers as programs of this machine, with your rights, in the network and a file system of their Pod; needs the cluster network',
      )
        .choices(containerModes)
        .default('off'),
    )
    .option(
      '--image <names...>',
      `programs that stand for images, such as ghcr.io/shop/tool=agnhost: ${programNames.join(', ')}, or an executable file; others keep the built-in server unless their container has a command`,
    )
    .option(
      '--inside',
      'run the program in the cluster network, as a Pod of namespace default; its KUBECONFIG works there',
      false,
    )
    .option(
      '--publish <ports...>',
      'lead ports of 127.0.0.1 to Services, such as 8080:shop/storefront:80; needs the cluster network',
    )
    .option(
      '--cluster-cidr <cidrs>',
      'range of Pod addresses: one CIDR, or two of different families (default: 10.244.0.0/16, fd00:10:244::/56)',
    )
    .option(
      '--default-pool <ranges>',
      'addresses of the default pool for LoadBalancer Services: CIDRs and ranges; "" for no pool (default: a range for documentation, such as 192.0.2.0/24, that no interface of this machine has)',
    )
    .option('--controllers <list>', 'controllers to run: a list of *, name and -name; "" for none', '*')
    .addOption(
      new Option(
        '--authorization-mode <mode>',
        'how requests are authorized; AlwaysAllow permits everything to authenticated users',
      )
        .choices(['AlwaysAllow', 'RBAC'])
        .default('AlwaysAllow'),
    )
    .addOption(
      new Option(
        '--platform <name>',
        "whose kinds there are; openshift: Route, EgressFirewall, EgressIP and the other kinds of OpenShift's network too",
      )
        .choices(platforms)
        .default('kubernetes'),
    )
    .option('--no-live-view', 'do not show the live view, even on a terminal')
    .option('--data-dir <folder>', 'keep all data in this folder (default: in memory only)')
    .addOption(
      allocationFlag('who allocates cluster IPs and node ports: the API server, or a controller beside it'),
    )
    .option(
      '--metrics-bind-address <address>',
      'serve health checks and metrics on this address, such as 127.0.0.1:8080; 0 for none',
      '0',
    )
    .addOption(logLevelFlag('warn'))
    .addOption(logFormatFlag())
    .action(async (program: readonly string[], options: Record<string, unknown>) => {
      const context = {
        ...{ isTerminal: process.stderr.isTTY, program, selectControllers: selectLocal },
        programs: { names: programNames, has: isProgram },
      };
      const config = upConfig(options, context);
      const { up } = await import('../up.ts');
      process.exitCode = await up(config);
    });
}

/** `servicenet run`. */
export function runCommand(): Command {
  return new Command('run')
    .description('run a program of this machine in the cluster network of servicenet up')
    .usage('[options] -- program...')
    .argument('<program...>', 'the program, and its arguments')
    .option('-n, --namespace <namespace>', 'namespace of the Pod', 'default')
    .option('--pod <name>', 'in this Pod (default: in a client Pod that exists for the program alone)')
    .option('--node <name>', 'on this node')
    .option('--outside', 'on a machine that belongs to no cluster', false)
    .option(
      '--kubeconfig <file>',
      'the kubeconfig that servicenet up has written (default: $KUBECONFIG, then ~/.servicenet/kubeconfig)',
    )
    .action(async (program: readonly string[], options: Record<string, unknown>) => {
      const { runConfig } = await import('../../flags/run.ts');
      const config = runConfig(options, program, process.env);
      const { runProgramInside } = await import('../run.ts');
      process.exitCode = await runProgramInside(config);
    });
}
