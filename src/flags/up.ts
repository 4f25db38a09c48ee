import { existingPrograms, imageChoices, imagePrograms, type LocalFiles } from './images.ts';
import { clusterCidrs, podRanges, poolRanges, rangesOfFamilies } from './addresses.ts';
import {
  address,
  boolean,
  ConfigError,
  type Given,
  hosts,
  list,
  nonEmpty,
  oneOf,
  optional,
  readFlags,
  readValue,
  type Table,
  text,
  texts,
  unlessNegated,
  type Values,
  wholeNumber,
  WrongValue,
} from './readers.ts';
import {
  allocationFlag,
  attachmentFlags,
  logFlags,
  metricsAddress,
  nodePortRangeFlag,
  readServiceCidrs,
} from './shared.ts';

/** Values of `--network`. */
const networkModes = ['auto', 'on', 'off'] as const;

/** Values of `--containers`. */
export const containerModes = ['auto', 'processes', 'off'] as const;

/**
 * Values of `--platform`: `openshift` also serves the kinds of OpenShift's network, by whose groups operators tell it from
 * other clusters.
 */
export const platforms = ['kubernetes', 'openshift'] as const;

/** Values of `--gateway-api`: the channel of Gateway API whose kinds there are. */
export const gatewayApis = ['standard', 'none'] as const;

/** Values of `--authorization-mode`. */
export const authorizationModes = ['AlwaysAllow', 'RBAC'] as const;

/** The flags of `servicenet up`. */
export const upFlags = {
  apply: {
    flag: '--apply <files...>',
    about: 'apply these YAML or JSON files when the server is ready',
    read: texts,
  },
  nodes: {
    flag: '--nodes <count>',
    about: 'number of simulated nodes; with 0, no workloads run',
    default: '3',
    read: wholeNumber(0, 1000),
  },
  port: {
    flag: '--port <port>',
    about: 'listen on this port; 0 for any free port (default: 6443)',
    read: optional(wholeNumber(0, 65_535)),
  },
  kubeconfig: {
    flag: '--write-kubeconfig <file>',
    about: 'write the kubeconfig to this file, with mode 0600 (default: ~/.servicenet/kubeconfig)',
    read: optional(nonEmpty),
  },
  addressPool: {
    flag: '--default-pool <ranges>',
    about:
      'addresses of the default pool for LoadBalancer Services: CIDRs and ranges; "" for no pool (default: a range for documentation, such as 192.0.2.0/24, that no interface of this machine has)',
    read: optional(poolRanges),
  },
  publish: {
    flag: '--publish <ports...>',
    about: 'lead ports of 127.0.0.1 to Services, such as 8000:shop/storefront:80; needs the cluster network',
    read: publishedPorts,
  },
  inside: {
    flag: '--inside',
    about:
      'run the program in the cluster network, as a Pod of namespace default; its KUBECONFIG works there',
    default: false,
    read: boolean,
  },
  dataDir: {
    flag: '--data-dir <folder>',
    about: 'keep all data in this folder (default: in memory only)',
    read: optional(nonEmpty),
  },
  liveView: {
    flag: '--no-live-view',
    about: 'do not show the live view, even on a terminal',
    read: unlessNegated,
  },
  page: {
    flag: '--page <port>',
    about:
      'serve the page at this port of 127.0.0.1; 0 for any free port, off for no page (default: 6480, or the next free one)',
    read: optional(pagePort),
  },
  network: {
    heading: 'Pods',
    flag: '--network <mode>',
    about:
      'put Pods into a network, so that they answer; auto: where this machine can make one (Linux, iproute2, user namespaces or root; nftables, else Services are forwarded in userspace)',
    default: 'auto',
    ...oneOf(...networkModes),
  },
  containers: {
    flag: '--containers <mode>',
    about:
      'run the commands of containers as programs of this machine, in the network and a file system of their Pod; auto: where this machine can hold them, and they see its programs and no other file of it; processes: they see all that you can read; off: only built-in ones run',
    default: 'auto',
    ...oneOf(...containerModes),
  },
  images: {
    flag: '--image <names...>',
    about: `programs that stand for images, such as ghcr.io/shop/tool=agnhost: ${imagePrograms.join(', ')}, or an executable file or a folder; others keep the built-in server unless their container has a command`,
    read: imageChoices,
  },
  missingImages: {
    flag: '--missing-images <list>',
    isList: true,
    about:
      'images that cannot be pulled, to see what follows (ErrImagePull, ImagePullBackOff); so are tags that begin with nosuch',
    default: '',
    read: list,
  },
  hostPathRoots: {
    flag: '--host-path-root <folders...>',
    about:
      'hostPath volumes may show these folders and what is in them; by default none, and with --containers=processes all',
    read: texts,
  },
  writableHostPaths: {
    flag: '--writable-host-paths',
    about:
      'what containers write to hostPath volumes is written to this machine, and sockets there can be connected; without, such volumes are read-only',
    default: false,
    read: boolean,
  },
  clusterCidrs: {
    flag: '--cluster-cidr <cidrs>',
    about:
      'range of Pod addresses: one CIDR, or two of different families (default: 10.244.0.0/16, fd00:10:244::/56; /14 and /54 for more than 256 nodes)',
    read: optional(clusterCidrs),
  },
  attachments: attachmentFlags,
  bindAddress: {
    heading: 'API server and controllers',
    flag: '--bind-address <address>',
    about: 'listen on this address',
    default: '127.0.0.1',
    read: address,
  },
  extraHosts: {
    flag: '--extra-hosts <list>',
    isList: true,
    about:
      'names and addresses by which clients also reach the server, for its certificate; requests for other names are refused',
    default: '',
    read: hosts,
  },
  serviceCidrs: {
    flag: '--service-cluster-ip-range <cidrs>',
    about: 'range of cluster IPs: one CIDR, or two of different families',
    default: '10.96.0.0/16',
    read: readServiceCidrs,
  },
  nodePorts: nodePortRangeFlag('range of node ports'),
  token: {
    flag: '--token <token>',
    about: "the administrator's bearer token, at least 8 characters (default: a random one)",
    read: optional(bearerToken),
  },
  authorizationMode: {
    flag: '--authorization-mode <mode>',
    about: 'how requests are authorized; AlwaysAllow permits everything to authenticated users',
    default: 'AlwaysAllow',
    ...oneOf(...authorizationModes),
  },
  platform: {
    flag: '--platform <name>',
    about:
      "whose kinds there are; openshift: Route, EgressFirewall, EgressIP and the other kinds of OpenShift's network too",
    default: 'kubernetes',
    ...oneOf(...platforms),
  },
  gatewayApi: {
    flag: '--gateway-api <channel>',
    about:
      'which kinds of Gateway API there are from the start: those of the standard channel, unless there are newer ones of yours, or none; none also lets you install definitions before v1.5 and those of the experimental channel',
    default: 'standard',
    ...oneOf(...gatewayApis),
  },
  /** As the list is given; {@link upConfig} finds the names. */
  controllers: {
    flag: '--controllers <list>',
    isList: true,
    about: 'controllers to run: a list of *, name and -name; "" for none',
    default: '*',
    read: list,
  },
  allocation: allocationFlag(
    'who allocates cluster IPs and node ports: the API server, or a controller beside it',
  ),
  metrics: {
    heading: 'Log and metrics',
    ...metricsAddress(
      '0',
      'serve health checks and metrics on this address, such as 127.0.0.1:8080; 0 for none',
    ),
  },
  ...logFlags('warn'),
} satisfies Table;

type UpFlags = Values<typeof upFlags>;

/** The settings of `servicenet up` and `servicenet/testing`: an API server, its controllers, simulated nodes. */
export interface LocalClusterConfig extends Pick<
  UpFlags,
  | 'bindAddress'
  | 'extraHosts'
  | 'serviceCidrs'
  | 'nodePorts'
  | 'token'
  | 'authorizationMode'
  | 'platform'
  | 'gatewayApi'
  | 'allocation'
  | 'dataDir'
  | 'nodes'
  | 'network'
  | 'containers'
  | 'writableHostPaths'
  | 'hostPathRoots'
  | 'images'
  | 'missingImages'
  | 'attachments'
  | 'metrics'
  // None: no pool. Undefined: a range that no interface of this machine has.
  | 'addressPool'
> {
  /** 0 takes any free one. */
  readonly port: number;
  /** The ranges of simulated Pods' addresses: one CIDR, or two of different families. */
  readonly clusterCidrs: readonly string[];
  /** Names of the controllers to run. */
  readonly controllers: readonly string[];
}

/** The configuration of `servicenet up`. */
export interface UpConfig
  extends
    LocalClusterConfig,
    Pick<UpFlags, 'apply' | 'liveView' | 'page' | 'publish' | 'inside' | 'logLevel' | 'logFormat'> {
  /** The absolute path of the kubeconfig, which has mode 0600. */
  readonly kubeconfigPath: string;
  /** A program and its arguments, to run against the server and then end; none: `up` ends with a signal. */
  readonly program: readonly string[];
}

/** What `upConfig` asks of others. */
export interface LocalChoices extends LocalFiles {
  /**
   * Which controllers a choice such as `*`, `name`, `-name` selects, by name.
   * @throws {WrongValue} for a name that is not known; the message has those that are.
   */
  readonly selectControllers: (
    choice: readonly string[],
    cluster: Pick<LocalClusterConfig, 'nodes' | 'allocation' | 'platform'>,
  ) => readonly string[];
  /** The path as it is from every folder. */
  readonly absolutePath: (path: string) => string;
}

/**
 * Checks the flags of `servicenet up`. With a program, nothing of it is where another `up` may be: any free port, and
 * a kubeconfig of its own.
 *
 * @param program the words behind the flags.
 * @param kubeconfigPath where `--write-kubeconfig` names no file.
 * @throws {ConfigError} naming the flag and what it takes.
 */
export function upConfig(
  given: Given,
  program: readonly string[],
  kubeconfigPath: string,
  { selectControllers, isExecutable, isFolder, realPath, absolutePath }: LocalChoices,
): UpConfig {
  const { kubeconfig, ...flags } = readFlags(upFlags, given);
  const alone = program.length === 0;
  checkNetwork(flags, alone);
  const families = flags.serviceCidrs.map(({ range }) => range.family);
  return Object.freeze({
    ...flags,
    port: flags.port ?? (alone ? 6443 : 0),
    // Without a network there is no place for the program.
    network: flags.inside || flags.containers === 'processes' ? 'on' : flags.network,
    hostPathRoots: flags.hostPathRoots.map((root) => realPath(absolutePath(root))),
    images: readValue(
      '--image',
      (images) => existingPrograms(images, { isExecutable, isFolder, realPath }),
      flags.images,
    ),
    clusterCidrs: readValue(
      '--cluster-cidr',
      (given) => podRanges(given, families, flags.nodes),
      flags.clusterCidrs,
    ),
    // No Service could use the others.
    addressPool: flags.addressPool && rangesOfFamilies(flags.addressPool, families),
    controllers: readValue('--controllers', (choice) => selectControllers(choice, flags), flags.controllers),
    liveView: flags.liveView && alone,
    kubeconfigPath: absolutePath(kubeconfig ?? kubeconfigPath),
    program,
  });
}

/** @throws {ConfigError} for flags that need the cluster network where there can be none. */
function checkNetwork(
  flags: Pick<UpFlags, 'inside' | 'network' | 'nodes' | 'containers'>,
  alone: boolean,
): void {
  const { inside, network, nodes, containers } = flags;
  if (inside && alone) throw new ConfigError('--inside needs a program: servicenet up --inside -- <program>');
  if (inside && network === 'off')
    throw new ConfigError('--inside needs the cluster network: not --network=off');
  if (inside && nodes === 0)
    throw new ConfigError('--inside needs a node for the Pod that the program is in');
  if (containers === 'processes' && (network === 'off' || nodes === 0))
    throw new ConfigError('--containers=processes needs the cluster network, and a node: not --network=off');
}

/** The administrator's bearer token. */
export function bearerToken(value: unknown): string {
  const token = text(value);
  if (token.length >= 8) return token;
  throw new WrongValue('must have at least 8 characters');
}

/** `--page`. */
function pagePort(value: unknown): number | 'off' {
  if (value === 'off') return 'off';
  try {
    return wholeNumber(0, 65_535)(value);
  } catch {
    throw new WrongValue('must be a port, 0 for any free one, or off');
  }
}

/** A port of 127.0.0.1 that is forwarded to a port of a Service. */
export interface PublishedPort {
  readonly port: number;
  readonly namespace: string;
  readonly service: string;
  /** A number or a name. */
  readonly servicePort: string;
}

/** `--publish`: `8000:shop/storefront:80`. */
export function publishedPorts(value: unknown): readonly PublishedPort[] {
  return texts(value).map((given) => {
    const [, port = '', namespace = '', service = '', servicePort = ''] =
      /^(\d{1,5}):([a-z0-9-]+)\/([a-z0-9-]+):([a-z0-9-]+)$/.exec(given) ?? [];
    if (servicePort === '' || Number(port) === 0 || Number(port) > 65535) {
      throw new WrongValue(`"${given}" must be like 8000:shop/storefront:80`);
    }
    return { port: Number(port), namespace, service, servicePort };
  });
}
