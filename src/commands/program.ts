import { Argument, Command, Option } from 'commander';
import { containerModes, networkModes } from '../config/local-cluster.ts';
import { isProgram, programNames } from '../emulation/containers/images.ts';
import { upConfig } from '../config/up.ts';
import { logFormats, logLevels } from '../telemetry/log.ts';
import { version } from '../telemetry/version.ts';
import { explanation } from './explanation.ts';
import { selectLocal, selectRemote } from './select-controllers.ts';

/** The command line. Commands are loaded when they are called, so that `--help` is fast. */
export function program(): Command {
  const root = new Command('servicenet')
    .description(
      'Kubernetes Service networking: an API server for tests, and a load balancer controller for any cluster',
    )
    .version(version(), '-V, --version')
    .showHelpAfterError('(run with --help for usage)')
    .exitOverride()
    // An option after a subcommand belongs to it, even if its parent has it too (pools, pools plan).
    .enablePositionalOptions();
  const commands = [
    upCommand(),
    controllerCommand(),
    nodeCommand(),
    dnsCommand(),
    auditCommand(),
    topCommand(),
    runCommand(),
    traceCommand(),
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

/** `addCommand` does not pass settings on: without this, a wrong flag would end the process inside commander. */
function inherit(command: Command, parent: Command): void {
  command.copyInheritedSettings(parent);
  for (const nested of command.commands) inherit(nested, command);
}

function upCommand(): Command {
  return new Command('up')
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
        'processes: run the commands of containers as programs of this machine, with your rights, in the network and a read-only file system of their Pod; needs the cluster network',
      )
        .choices(containerModes)
        .default('off'),
    )
    .option(
      '--image <names...>',
      `programs that stand for images, such as ghcr.io/shop/tool=agnhost: ${programNames.join(', ')}, or an executable file; other images keep the built-in server`,
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
      const { up } = await import('./up.ts');
      process.exitCode = await up(config);
    });
}

/** The defaults of durations are kube-controller-manager's. */
function controllerCommand(): Command {
  return withLoadBalancer(withCluster(new Command('controller')))
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
      const { controllerConfig } = await import('../config/controller.ts');
      const config = controllerConfig(options, process.stderr.isTTY, selectRemote);
      const { controller } = await import('./controller.ts');
      await controller(config);
    });
}

/** The flags that kube-proxy has too are its own; see {@link NodeConfig}. */
function nodeCommand(): Command {
  return withCluster(new Command('node'))
    .description(
      'carry the traffic of Services on this node, in the place of kube-proxy, or announce their addresses',
    )
    .option('--node-name <name>', 'name of the Node object (default: $NODE_NAME, then the host name)')
    .option(
      '--features <list>',
      'what to do on the node: proxy, forward the traffic of Services; announce, answer for the addresses of load balancers',
      'proxy',
    )
    .option(
      '--detect-local-mode <mode>',
      'how Pods of this node are recognised: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix',
      'ClusterCIDR',
    )
    .option('--cluster-cidr <cidrs>', 'ranges of Pod addresses, for ClusterCIDR')
    .option('--pod-bridge-interface <name>', 'bridge of the Pods, for BridgeInterface')
    .option(
      '--pod-interface-name-prefix <prefix>',
      "how names of Pods' interfaces begin, for InterfaceNamePrefix",
    )
    .option('--masquerade-all', 'masquerade all traffic to cluster IPs', false)
    .option(
      '--nodeport-addresses <cidrs>',
      'addresses of the node at which node ports answer: CIDRs, or primary for its InternalIPs',
      'primary',
    )
    .option(
      '--healthz-bind-address <address>',
      'tell load balancers and the kubelet the health of the node on this address; 0 for none',
      '0.0.0.0:10256',
    )
    .option(
      '--metrics-bind-address <address>',
      'serve /healthz, /readyz, /metrics and /proxyMode on this address; 0 for none',
      '127.0.0.1:10249',
    )
    .option('--min-sync-period <duration>', 'least time between two writes into the kernel', '50ms')
    .option('--sync-period <duration>', 'time between full comparisons with the kernel', '1h')
    .option('--mark-mask <mask>', 'bits of the packet mark that the agent may use', '0x0fffc000')
    .option('--beside-other-proxies', 'start although another Service proxy is at work on the node', false)
    .option(
      '--conntrack-max-per-core <count>',
      'connections that the kernel remembers, for each CPU core; 0 to leave it as it is',
      '32768',
    )
    .option('--conntrack-min <count>', 'connections that the kernel remembers, at least', '131072')
    .option(
      '--conntrack-tcp-timeout-established <duration>',
      'how long an idle TCP connection is remembered; 0s to leave it as it is',
      '24h',
    )
    .option(
      '--conntrack-tcp-timeout-close-wait <duration>',
      'how long a TCP connection in CLOSE_WAIT is remembered; 0s to leave it as it is',
      '1h',
    )
    .option('--conntrack-tcp-be-liberal', 'let packets pass that are outside the TCP window', false)
    .option(
      '--conntrack-udp-timeout <duration>',
      'how long a UDP flow without answers is remembered; 0s to leave it as it is',
      '0s',
    )
    .option(
      '--conntrack-udp-timeout-stream <duration>',
      'how long a UDP flow with answers is remembered; 0s to leave it as it is',
      '0s',
    )
    .option('--lease-namespace <name>', 'where agents that announce keep their Leases', 'servicenet-system')
    .option(
      '--on-api-loss <what>',
      'what becomes of announced addresses while the API server answers no agent: hold or withdraw',
      'hold',
    )
    .option(
      '--restart-grace <duration>',
      'how long addresses stay after an orderly end that no other node can announce',
      '120s',
    )
    .option('--heartbeat-port <port>', 'UDP port of heartbeats between agents that announce', '10262')
    .option(
      '--announce-on <what>',
      'announce on a macvlan of each interface, or on the interface itself, for Wi-Fi and switches that take one MAC address a port: macvlan or interface',
      'macvlan',
    )
    .option('--arping', 'announce anew by the program arping, which needs NET_RAW', false)
    .option('--sysctl-folder <path>', 'where kernel parameters are', '/proc/sys')
    .option(
      '--init-only',
      'set the kernel parameters of --conntrack-…, then exit: for a privileged init container',
      false,
    )
    .option('--cleanup', 'remove all that the agent wrote into the kernel, then exit', false)
    .addOption(logLevelFlag('info'))
    .addOption(logFormatFlag())
    .action(async (options: Record<string, unknown>) => {
      const { nodeConfig } = await import('../config/node.ts');
      const config = nodeConfig(options, process.stderr.isTTY, process.env);
      const { node } = await import('./node.ts');
      await node(config);
    });
}

function dnsCommand(): Command {
  return withCluster(new Command('dns'))
    .description("answer DNS queries for a cluster's Services and Pods, in the place of CoreDNS")
    .option('--cluster-domain <name>', 'domain of the cluster', 'cluster.local')
    .option('--bind-address <addresses>', 'answer on these addresses of the machine', '127.0.0.1')
    .option('--port <port>', 'answer on this port, by UDP and TCP; 53 needs root', '1053')
    .option('--ttl <seconds>', 'how long clients may keep an answer, 0 to 3600 seconds', '5')
    .addOption(
      new Option(
        '--pods <mode>',
        'names of Pods, such as 10-244-0-7.default.pod.cluster.local: none; of any address; of Pods of the namespace',
      )
        .choices(['disabled', 'insecure', 'verified'])
        .default('disabled'),
    )
    .option(
      '--upstream <servers>',
      'servers for names outside the cluster, and files that list some; "" for none',
      '/etc/resolv.conf',
    )
    .option('--lameduck <duration>', 'go on answering for so long after a signal', '0s')
    .option(
      '--metrics-bind-address <address>',
      'serve /healthz, /readyz and /metrics on this address; 0 for none',
      '127.0.0.1:9153',
    )
    .addOption(logLevelFlag('info'))
    .addOption(logFormatFlag())
    .action(async (options: Record<string, unknown>) => {
      const { dnsConfig } = await import('../config/dns.ts');
      const config = dnsConfig(options, process.stderr.isTTY);
      const { dns } = await import('./dns.ts');
      await dns(config);
    });
}

function runCommand(): Command {
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
      const { runConfig } = await import('../config/run.ts');
      const config = runConfig(options, program, process.env);
      const { runCommand: run } = await import('./run.ts');
      process.exitCode = await run(config);
    });
}

function auditCommand(): Command {
  return withCluster(new Command('audit'))
    .description(
      'report cluster IPs and node ports that are duplicate, leaked or out of range; exit with 1 if there are any',
    )
    .option('--service-node-port-range <range>', "the API server's range of node ports", '30000-32767')
    .addOption(outputFlag())
    .action(async (options: Record<string, unknown>) => {
      const { auditConfig } = await import('../config/audit.ts');
      const config = auditConfig(options);
      const { audit } = await import('./audit.ts');
      process.exitCode = await looked(() => audit(config));
    });
}

function traceCommand(): Command {
  return withCluster(new Command('trace'))
    .description(
      'say where a connection goes, through DNS, Services, NetworkPolicies and EgressFirewalls; exit with 0 if it arrives, 1 if not, 2 if objects do not tell',
    )
    .argument('[source]', 'pod/NAMESPACE/NAME, node/NAME, outside or an address')
    .argument(
      '[destination]',
      'svc/NAMESPACE/NAME:PORT, pod/NAMESPACE/NAME:PORT, node/NAME:PORT, an address or a name',
    )
    .option('-n, --namespace <name>', 'namespace of names without one, and of --matrix', 'default')
    .addOption(new Option('--protocol <protocol>', 'protocol').choices(['TCP', 'UDP', 'SCTP']).default('TCP'))
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
        const { traceConfig } = await import('../config/trace.ts');
        const config = traceConfig(
          options,
          [source, destination].filter((each) => each !== undefined),
        );
        const { trace } = await import('./trace.ts');
        process.exitCode = await looked(() => trace(config));
      },
    );
}

function poolsCommand(): Command {
  return withLoadBalancer(withCluster(new Command('pools')))
    .description('show AddressPools, who holds which address, and which Services are waiting')
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
      const { poolsPlanConfig } = await import('../config/pools.ts');
      const config = poolsPlanConfig(options);
      const { poolsPlan } = await import('./pools-plan.ts');
      process.exitCode = await looked(() => poolsPlan(config));
    });
}

/** The exit codes of a command that reports findings, as of diff: 1 with findings, 2 on failure. */
async function looked(look: () => Promise<0 | 1 | 2>): Promise<0 | 1 | 2> {
  try {
    return await look();
  } catch (error) {
    process.stderr.write(`servicenet: ${await explanation(error)}\n`);
    return 2;
  }
}

function importCommand(): Command {
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
      const { importConfig } = await import('../config/import.ts');
      const config = importConfig({ ...options, source });
      const { importPools } = await import('./import.ts');
      await importPools(config);
    });
}

function withLoadBalancer(command: Command): Command {
  return command
    .option('--lb-class <class>', 'serve Services of this loadBalancerClass', 'servicenet.dev/load-balancer')
    .option('--default-class', 'also serve Services without a class', true)
    .option('--no-default-class', 'leave Services without a class to another load balancer')
    .option('--compat', 'also read the annotations of MetalLB, kube-vip, PureLB and Cilium', true)
    .option('--no-compat', 'read only the annotations of servicenet.dev');
}

function outputFlag(): Option {
  return new Option('-o, --output <format>', 'output format').choices(['table', 'json']).default('table');
}

function topCommand(): Command {
  return withCluster(new Command('top'))
    .description('show Services, pools and Events live; without a terminal, print changes as lines')
    .option('-n, --namespace <name>', 'show only Services and Events of this namespace')
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
      'kubeconfig file (default: $KUBECONFIG, ~/.kube/config, then the service account of the Pod)',
    )
    .option('--context <name>', 'kubeconfig context to use')
    .option('--server <url>', 'URL of the API server, instead of a kubeconfig')
    .option('--token-file <file>', 'file with the bearer token for --server')
    .option('--certificate-authority <file>', 'file with the CA of --server, in PEM format');
}

function allocationFlag(description: string): Option {
  return new Option('--allocation <who>', description).choices(['server', 'controller']).default('server');
}

function logLevelFlag(level: string): Option {
  return new Option('--log-level <level>', 'lowest level to log').choices(logLevels).default(level);
}

function logFormatFlag(): Option {
  return new Option('--log-format <format>', 'log format (default: pretty on a terminal, else json)').choices(
    logFormats,
  );
}
