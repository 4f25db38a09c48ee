import {
  WrongValue,
  texts,
  ConfigError,
  address,
  bindAddress,
  Flags,
  hosts,
  wholeNumber,
  list,
  oneOf,
  optional,
  textOf,
  yesOrNo,
} from './readers.ts';
import {
  type AttachmentSettings,
  nodePortRange,
  readServiceCidrs,
  type LogConfig,
  logConfig,
  attachmentSettings,
} from './shared.ts';
import { randomUUID } from 'node:crypto';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { clusterCidrs, defaultPool } from './addresses.ts';

/** The program of an image. */
export interface ImageChoice {
  /** With or without its tag. */
  readonly image: string;
  /** The name of a built-in program, or a file of this machine. */
  readonly program: string;
}

/**
 * Reads `--image`: `ghcr.io/shop/tool=agnhost`.
 *
 * @param programs which there are, by name; for messages.
 * @param isProgram whether there is such a program.
 */
export function imageChoices(
  programs: readonly string[],
  isProgram: (name: string) => boolean,
): (value: unknown) => readonly ImageChoice[] {
  return (value) =>
    texts(value ?? []).map((text) => {
      const [, image = '', program = ''] = /^([^=\s]+)=(\S+)$/.exec(text) ?? [];
      if (image === '') throw new WrongValue(`"${text}" must be like ghcr.io/shop/tool=agnhost`);
      if (!isProgram(program)) {
        const known = `the programs are ${programs.join(', ')}, and executable files by their absolute path`;
        throw new WrongValue(`there is no program "${program}" for "${image}": ${known}`);
      }
      return { image, program };
    });
}

/** Values of `--network`. */
export const networkModes = ['auto', 'on', 'off'] as const;

/** Values of `--containers`. */
export const containerModes = ['off', 'processes'] as const;

/**
 * Values of `--platform`: `openshift` also serves the kinds of OpenShift's network, by whose groups operators tell it from
 * other clusters.
 */
export const platforms = ['kubernetes', 'openshift'] as const;

/** The settings of `servicenet up` and `servicenet/testing`: an API server, its controllers, simulated nodes. */
export interface LocalClusterConfig {
  readonly bindAddress: string;
  /** 0 takes any free one. */
  readonly port: number;
  /** More names and addresses of the server, for its certificate and the `Host` of requests. */
  readonly extraHosts: readonly string[];
  readonly serviceCidrs: ReturnType<typeof readServiceCidrs>;
  readonly nodePorts: ReturnType<typeof nodePortRange>;
  /** The administrator's bearer token; undefined: a random one. */
  readonly token: string | undefined;
  readonly authorizationMode: 'AlwaysAllow' | 'RBAC';
  /** The platform whose kinds are served. */
  readonly platform: (typeof platforms)[number];
  /** What allocates addresses and node ports of Services. */
  readonly allocation: 'server' | 'controller';
  /** The directory of the store; undefined: in memory. */
  readonly dataDir: string | undefined;
  /** Simulated nodes. */
  readonly nodes: number;
  /** Whether Pods are in a network; `auto`: where this machine can make one. */
  readonly network: (typeof networkModes)[number];
  /** Whether commands of containers run as processes of this machine. */
  readonly containers: (typeof containerModes)[number];
  /** Programs of images, which precede the built-in ones. */
  readonly images: readonly ImageChoice[];
  /** The ranges of simulated Pods' addresses: one CIDR, or two of different families. */
  readonly clusterCidrs: readonly string[];
  /** Names of the controllers to run. */
  readonly controllers: readonly string[];
  readonly attachments: AttachmentSettings;
  /**
   * Ranges of the pool that Services of type LoadBalancer get their addresses from; none: no pool; undefined: a range
   * that no interface of this machine has.
   */
  readonly addressPool: readonly string[] | undefined;
  /** The address of health and metrics; undefined: none. */
  readonly metricsBindAddress: { readonly host: string; readonly port: number } | undefined;
}

/**
 * Which controllers a choice such as `*`, `name`, `-name` selects, by name.
 * @throws {WrongValue} for a name that is not known; the message has those that are.
 */
export type SelectControllers = (
  choice: readonly string[],
  cluster: Pick<LocalClusterConfig, 'nodes' | 'allocation' | 'platform'>,
) => readonly string[];

/** The configuration of `servicenet up`: validated, frozen. */
export interface UpConfig extends LocalClusterConfig, LogConfig {
  /** Files to apply. */
  readonly apply: readonly string[];
  /** Whether a terminal shows everything as it changes. */
  readonly liveView: boolean;
  /** Ports of 127.0.0.1 that are forwarded to Services. */
  readonly publish: readonly PublishedPort[];
  /** The path of the kubeconfig, which has mode 0600. */
  readonly kubeconfigPath: string;
  /** A program and its arguments, to run against the server and then end; none: `up` ends with a signal. */
  readonly program: readonly string[];
  /** Whether the program runs in the cluster network. */
  readonly inside: boolean;
}

/** The inputs of `upConfig` besides the flags. */
export interface UpContext {
  /** Whether standard error is a terminal: then logs are pretty by default. */
  readonly isTerminal: boolean;
  /** The program to run: the words after the flags. */
  readonly program: readonly string[];
  readonly selectControllers: SelectControllers;
  /** The names of built-in programs, and whether there is one of a name. */
  readonly programs: { readonly names: readonly string[]; readonly has: (name: string) => boolean };
}

/**
 * Checks the flags of `servicenet up`. With a program, nothing of it is where another `up` may be: any free port, and
 * a kubeconfig of its own.
 * @throws {ConfigError} naming the flag and what it takes.
 */
export function upConfig(
  options: Readonly<Record<string, unknown>>,
  { isTerminal, program, selectControllers, programs }: UpContext,
): UpConfig {
  const alone = program.length === 0;
  const flags = new Flags(options);
  const serviceRanges = flags.read('serviceClusterIpRange', readServiceCidrs);
  const families = serviceRanges.map(({ range }) => range.family);
  const nodes = flags.read('nodes', wholeNumber(0, 1000));
  const allocation = flags.read('allocation', oneOf(['server', 'controller']));
  const platform = flags.read('platform', oneOf(platforms));
  const network = flags.read('network', oneOf(networkModes));
  const inside = flags.read('inside', yesOrNo);
  if (inside && alone) throw new ConfigError('--inside needs a program: servicenet up --inside -- <program>');
  if (inside && network === 'off')
    throw new ConfigError('--inside needs the cluster network: not --network=off');
  if (inside && nodes === 0)
    throw new ConfigError('--inside needs a node for the Pod that the program is in');
  const containers = flags.read('containers', oneOf(containerModes));
  if (containers === 'processes' && (network === 'off' || nodes === 0))
    throw new ConfigError('--containers=processes needs the cluster network, and a node: not --network=off');
  return Object.freeze({
    bindAddress: flags.read('bindAddress', address),
    port: flags.read('port', optional(wholeNumber(0, 65535))) ?? (alone ? 6443 : 0),
    extraHosts: flags.read('extraHosts', hosts),
    serviceCidrs: serviceRanges,
    nodePorts: flags.read('serviceNodePortRange', nodePortRange),
    token: flags.read('token', optional(textOf(8))),
    apply: flags.read('apply', texts),
    nodes,
    publish: flags.read('publish', publishedPorts),
    // Without a network there is no place for the program.
    network: inside || containers === 'processes' ? 'on' : network,
    inside,
    containers,
    images: flags.read('image', imageChoices(programs.names, programs.has)),
    clusterCidrs: flags.read('clusterCidr', clusterCidrs(families)),
    liveView: flags.read('liveView', yesOrNo) && alone,
    addressPool: flags.read('defaultPool', defaultPool(families)),
    controllers: flags.read('controllers', (value) =>
      selectControllers(list(value), { nodes, allocation, platform }),
    ),
    attachments: attachmentSettings(flags),
    allocation,
    metricsBindAddress: flags.read('metricsBindAddress', bindAddress),
    authorizationMode: flags.read('authorizationMode', oneOf(['AlwaysAllow', 'RBAC'])),
    platform,
    dataDir: flags.read('dataDir', optional(textOf())),
    kubeconfigPath: flags.read('writeKubeconfig', optional(textOf())) ?? defaultKubeconfigPath(alone),
    program,
    ...logConfig(flags, isTerminal),
  });
}

function defaultKubeconfigPath(alone: boolean): string {
  return join(homedir(), '.servicenet', alone ? 'kubeconfig' : `kubeconfig-${randomUUID()}`);
}

/** A port of 127.0.0.1 that is forwarded to a port of a Service. */
export interface PublishedPort {
  readonly port: number;
  readonly namespace: string;
  readonly service: string;
  /** A number or a name. */
  readonly servicePort: string;
}

/** Reads `--publish`: `8080:shop/storefront:80`. */
export function publishedPorts(value: unknown): readonly PublishedPort[] {
  return texts(value).map((text) => {
    const [, port = '', namespace = '', service = '', servicePort = ''] =
      /^(\d{1,5}):([a-z0-9-]+)\/([a-z0-9-]+):([a-z0-9-]+)$/.exec(text) ?? [];
    if (servicePort === '' || Number(port) === 0 || Number(port) > 65535) {
      throw new WrongValue(`"${text}" must be like 8080:shop/storefront:80`);
    }
    return { port: Number(port), namespace, service, servicePort };
  });
}
