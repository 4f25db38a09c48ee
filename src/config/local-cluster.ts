import type { AttachmentSettings } from './attachments.ts';
import type { ImageChoice } from './image-programs.ts';
import type { nodePortRange, readServiceCidrs } from './service-ranges.ts';

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
