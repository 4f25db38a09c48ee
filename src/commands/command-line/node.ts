import { Command, Option } from 'commander';
import { logFormatFlag, logLevelFlag, withCluster } from './shared-flags.ts';

/** The flags that kube-proxy has too are its own; see {@link NodeConfig}. */
export function nodeCommand(): Command {
  return withCluster(new Command('node'))
    .description(
      'carry the traffic of Services on this node, in the place of kube-proxy, or announce their addresses',
    )
    .option('--node-name <name>', 'name of the Node object (default: $NODE_NAME, then the host name)')
    .option(
      '--features <list>',
      'what to do on the node: proxy, forward the traffic of Services; announce, answer for the addresses of load balancers; policy, enforce NetworkPolicies; egress, with announce: let Pods leave by the addresses of EgressIPs',
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
    .option('--beside-other-engines', 'start although another policy engine is at work on the node', false)
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
      const { nodeConfig } = await import('../../flags/node.ts');
      const config = nodeConfig(options, process.stderr.isTTY, process.env);
      const { node } = await import('../node.ts');
      await node(config);
    });
}

/** `servicenet dns`. */
export function dnsCommand(): Command {
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
      const { dnsConfig } = await import('../../flags/dns.ts');
      const config = dnsConfig(options, process.stderr.isTTY);
      const { dns } = await import('../dns.ts');
      await dns(config);
    });
}

/** `servicenet router`. */
export function routerCommand(): Command {
  return withCluster(new Command('router'))
    .description('carry HTTP from outside to the Services of a cluster, as Ingresses and Routes say')
    .option('--bind-address <addresses>', 'answer on these addresses of the machine', '127.0.0.1')
    .option('--http-port <port>', 'answer requests without TLS on this port; 80 needs root', '8080')
    .option('--https-port <port>', 'answer TLS on this port; 443 needs root', '8443')
    .option(
      '--ingress-class <name>',
      'serve Ingresses whose annotation kubernetes.io/ingress.class is this, beside those of our IngressClasses',
      'servicenet',
    )
    .option('--watch-ingress-without-class', 'serve Ingresses that name no class, too', false)
    .option('--no-routes', 'do not serve Routes')
    .option('--router-name <name>', 'name of this router in the status of Routes and of its Lease', 'default')
    .option('--router-domain <name>', 'domain of Routes that have a subdomain and no host', '')
    .option('--canonical-hostname <name>', 'what the DNS names of Routes point to, for their status', '')
    .option('--allowed-domains <names>', 'admit Routes of these domains only', '')
    .option('--denied-domains <names>', 'admit no Routes of these domains', '')
    .option('--allow-wildcard-routes', 'admit Routes with the wildcard policy Subdomain', false)
    .option(
      '--disable-namespace-ownership-check',
      'let namespaces share the host of a Route, each with paths of its own',
      false,
    )
    .option(
      '--default-certificate <secret>',
      'namespace/name of the Secret with the certificate for hosts that have none',
    )
    .option(
      '--publish-service <service>',
      'namespace/name of the Service whose addresses Ingresses get in their status',
    )
    .option('--publish-address <addresses>', 'addresses and host names that Ingresses get instead', '')
    .option(
      '--lease-namespace <name>',
      'where the Lease of the one that writes status is',
      'servicenet-system',
    )
    .addOption(
      new Option('--forwarded-headers <policy>', 'what to do with X-Forwarded-* and Forwarded of clients')
        .choices(['append', 'replace', 'if-none', 'never'])
        .default('replace'),
    )
    .option('--access-log', 'log each request', false)
    .option('--connect-timeout <duration>', 'time to connect to a backend', '5s')
    .option('--backend-timeout <duration>', 'how long a backend may be silent', '60s')
    .option('--lameduck <duration>', 'go on answering for so long after a signal', '0s')
    .option('--drain-timeout <duration>', 'time for requests to end after that', '30s')
    .option(
      '--metrics-bind-address <address>',
      'serve /healthz, /readyz and /metrics on this address; 0 for none',
      '127.0.0.1:9154',
    )
    .addOption(logLevelFlag('info'))
    .addOption(logFormatFlag())
    .action(async (options: Record<string, unknown>) => {
      const { routerConfig } = await import('../../flags/router.ts');
      const config = routerConfig(options, process.stderr.isTTY);
      const { router } = await import('../router.ts');
      await router(config);
    });
}
