import type { ChildProcess } from 'node:child_process';
import { Server, Socket } from 'node:net';
import { isRecord } from '../objects/json.ts';
import type { IPFamily } from '../objects/address.ts';
import type { logFormats, LogLevel } from '../telemetry/log-words.ts';
import type { ImageProgram } from './containers/images.ts';
import type { Tuple } from '../network/flows/conntrack.ts';
import type { FlowFilter, FlowNews } from '../network/flows/flow.ts';
import type { PodResponses } from './pod-server.ts';
import { namespaceFolder } from './namespace-folder.ts';

/**
 * The calls of `up` to the process inside its network, over the channel between the two. Sockets pass it as
 * descriptors: no byte of a connection is relayed.
 */
export type NetworkCall =
  /**
   * Once, first: answered with the server by which the process itself reaches the API server, without TLS; without one
   * where there is none.
   */
  | { readonly call: 'own-way' }
  /** Once, then: answered with the server that listens for the API server, on the LAN. */
  | { readonly call: 'start'; readonly config: StartConfig }
  /** Answered when every node has its machine. */
  | { readonly call: 'complete' }
  /** A connection from the control plane, to an address of the cluster; answered with its socket. */
  | { readonly call: 'dial'; readonly address: string; readonly port: number }
  /** The same to a port of a Service, by its number or name. */
  | {
      readonly call: 'dial-service';
      readonly namespace: string;
      readonly name: string;
      readonly port: string;
    }
  /** Answered with a {@link NetworkLocation}. */
  | { readonly call: 'locate'; readonly target: Target }
  /** The program at a location has ended. */
  | { readonly call: 'release'; readonly location: NetworkLocation }
  /** Somebody looks at flows; answered with the last ones that are known, then come {@link FlowsMessage}s. */
  | {
      readonly call: 'watch-flows';
      readonly viewer: number;
      readonly filter: FlowFilter;
      /** How many that are known, at most. */
      readonly last: number;
    }
  /** No longer. */
  | { readonly call: 'leave-flows'; readonly viewer: number }
  /** Answered with what nodes know of a connection of TCP: `SeenConnection`s. */
  | { readonly call: 'see'; readonly connection: Tuple };

/** The first message of the process inside. */
export interface FirstMessage {
  /** Why it cannot work; empty: it can. */
  readonly obstacle: string;
  /** Why no command of a container can be run there; empty: they can. */
  readonly commandsObstacle: string;
}

export function isFirstMessage(message: unknown): message is FirstMessage {
  return isRecord(message) && 'obstacle' in message && 'commandsObstacle' in message;
}

/** Messages of the process inside that answer no call. */
export interface ResponsesMessage {
  readonly responses: PodResponses;
}

function isResponsesMessage(message: unknown): message is ResponsesMessage {
  return isRecord(message) && Array.isArray(message['responses']);
}

/** What there is for one who looks at flows. */
export interface FlowsMessage {
  readonly viewer: number;
  readonly news: FlowNews;
}

function isFlowsMessage(message: unknown): message is FlowsMessage {
  return isRecord(message) && typeof message['viewer'] === 'number' && isRecord(message['news']);
}

/** Takes news; undefined: the network has ended, and nothing more comes. */
export type FlowListener = (news: FlowNews | undefined) => void;

/** The settings of the cluster network, from `up`; plain values. */
export interface NetworkConfig {
  readonly logLevel: LogLevel;
  readonly logFormat: (typeof logFormats)[number];
  readonly server: { readonly port: number; readonly ca: string; readonly token: string };
  /** Of the kubelets' servers; PEM. Undefined: there is no kubelet. `client`: the name of the only one that is served. */
  readonly kubeletTls: {
    readonly certificate: string;
    readonly key: string;
    readonly clientCa: string;
    readonly client: string;
  };
  /** YAML, for programs inside: it names the API server's address on the LAN. */
  readonly kubeconfig: string;
  readonly families: readonly IPFamily[];
  readonly clusterCidrs: readonly string[];
  readonly serviceCidrs: readonly string[];
  /** Nodes that the cluster begins with. */
  readonly nodes: number;
  /** Whether to run the kubelet, too. */
  readonly kubelet: boolean;
  /** Whether the controller that attaches Pods' further networks runs. */
  readonly awaitsNetworks: boolean;
  /** Images that cannot be pulled. */
  readonly missingImages: readonly string[];
  /** Whether to make the checks of PodNetworkConnectivityChecks, too. */
  readonly checksEndpoints: boolean;
  /** Whether the server has Routes, for the router. */
  readonly hasRoutes: boolean;
  /** Whether the server has the kinds of Gateway API, for the router. */
  readonly hasGateways: boolean;
  /** Whether commands of containers are run; `auto`: they are, and see programs of the machine alone. */
  readonly containers: 'auto' | 'off' | 'processes';
  /** Folders of which hostPath volumes may be, but with `processes`; absolute, without links. */
  readonly hostPathRoots: readonly string[];
  /** Whether containers may write to hostPath volumes. */
  readonly writableHostPaths: boolean;
  /** The folder that those of claims are kept in, absolute; undefined: they end with the network. */
  readonly claimsFolder: string | undefined;
  /** Programs by image, before those that are known. */
  readonly images: readonly (readonly [string, ImageProgram])[];
}

/** The variable with the name of the folder of cgroups, which is removed from outside. */
export const cgroupsVariable = 'SERVICENET_CGROUPS';

/** The forwarding of nodes: with nftables, or without it in this program. */
export type Forwarding = 'nftables' | 'userspace';

/** The settings of the process inside. */
export interface StartConfig extends NetworkConfig {
  readonly forwarding: Forwarding;
}

/** The target of a program, as its user names it. */
export type Target =
  /** A Pod of this namespace that exists for the program alone. */
  | { readonly kind: 'client'; readonly namespace: string }
  | { readonly kind: 'pod'; readonly namespace: string; readonly name: string }
  | {
      readonly kind: 'workload';
      readonly workload: string;
      readonly namespace: string;
      readonly name: string;
    }
  | { readonly kind: 'node'; readonly name: string }
  | { readonly kind: 'outside' };

/** The location that a program runs at. */
export interface NetworkLocation {
  /** A network namespace, by its name for `ip netns`. */
  readonly namespace: string;
  /** A file that a program finds as `/etc/resolv.conf`; undefined: that of the machine. */
  readonly resolvConf?: string;
  /** The uid of the Pod that exists for this program alone. */
  readonly client?: string;
}

export function isNetworkLocation(value: unknown): value is NetworkLocation {
  return isRecord(value) && typeof value['namespace'] === 'string';
}

type Handle = Server | Socket;

/** The answer of a call. */
export interface NetworkAnswer {
  readonly result?: unknown;
  readonly handle?: Handle;
}

interface Request {
  readonly id: number;
  readonly request: NetworkCall;
}

interface Reply {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string; readonly code?: string };
}

// Both ends are this program: members that are not checked here are as the other end wrote them.
function isRequest(message: unknown): message is Request {
  return isRecord(message) && typeof message['id'] === 'number' && isRecord(message['request']);
}

function isReply(message: unknown): message is Reply {
  return isRecord(message) && typeof message['id'] === 'number';
}

/** The end of `up`. */
export class Caller {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, PromiseWithResolvers<NetworkAnswer>>();
  /** Those who look at flows, by their number. */
  readonly flowListeners = new Map<number, FlowListener>();
  #calls = 0;

  /** @param onResponses is called with what Pods have answered. */
  constructor(process: ChildProcess, onResponses: (responses: PodResponses) => void) {
    this.#process = process;
    process.on('message', (message, handle) => {
      if (isReply(message)) this.#hear(message, handle);
      else if (isResponsesMessage(message)) onResponses(message.responses);
      else if (isFlowsMessage(message)) this.flowListeners.get(message.viewer)?.(message.news);
    });
    process.once('disconnect', () => {
      for (const { reject } of this.#waiting.values()) reject(ended());
      this.#waiting.clear();
      for (const listener of this.flowListeners.values()) listener(undefined);
      this.flowListeners.clear();
    });
  }

  /** @throws {Error} of the other side, with its `code`; or where that has ended. */
  async call(request: NetworkCall): Promise<NetworkAnswer> {
    if (!this.#process.connected) throw ended();
    const id = ++this.#calls;
    const answer = Promise.withResolvers<NetworkAnswer>();
    this.#waiting.set(id, answer);
    this.#process.send({ id, request } satisfies Request, (error) => {
      // The other end is gone, which is read later: EPIPE.
      if (error !== null && this.#waiting.delete(id)) answer.reject(ended(error));
    });
    return await answer.promise;
  }

  #hear({ id, result, error }: Reply, handle: unknown): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error !== undefined) waiting?.reject(Object.assign(new Error(error.message), { code: error.code }));
    else if (handle instanceof Server || handle instanceof Socket) waiting?.resolve({ result, handle });
    else waiting?.resolve({ result });
  }
}

const endedCode = 'ENETDOWN';

function ended(cause?: Error): Error {
  return Object.assign(new Error('the cluster network has ended', { cause }), { code: endedCode });
}

/** Whether a call failed because the process inside has ended. */
export function isNetworkEnded(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === endedCode;
}

/** The end inside. The process ends with the channel. */
export function answerCalls(answer: (call: NetworkCall) => Promise<NetworkAnswer>): void {
  process.on('disconnect', () => process.exit());
  process.on('message', (message) => {
    if (!isRequest(message)) return;
    const { id, request } = message;
    answer(request).then(
      ({ result, handle }) => reply({ id, result }, handle),
      (error: unknown) => {
        const known = error instanceof Error ? error : new Error(String(error));
        const code = 'code' in known && typeof known.code === 'string' ? { code: known.code } : {};
        reply({ id, error: { message: known.message, ...code } });
      },
    );
  });
}

/** A descriptor that was sent is the receiver's: here it is closed. */
function reply(message: Reply, handle?: Handle): void {
  process.send?.(message, handle, {}, () => {
    if (handle instanceof Socket) handle.destroy();
    else handle?.close();
  });
}

/** The KUBECONFIG of programs inside. It is in a file system of the network, and ends with it. */
export const insideKubeconfigPath = '/run/kubeconfig';

/**
 * The command line before a program that runs at a location.
 *
 * @param enter those that lead into the first namespaces.
 * @param folder where the program begins.
 */
export function argvAt(
  enter: readonly string[],
  location: NetworkLocation,
  folder: string,
): readonly string[] {
  const { namespace, resolvConf } = location;
  return [
    // Without these, the program would outlive its parent or nsenter.
    ...endWithParent,
    ...enter,
    '--',
    ...endWithParent,
    ...['nsenter', `--net=${namespaceFolder}/${namespace}`, '--'],
    ...(resolvConf === undefined ? [] : ['unshare', '--mount', 'sh', '-c', withResolvConf, resolvConf]),
    // A mount namespace begins at its root.
    ...['sh', '-c', 'cd "$0" && exec "$@"', folder, 'env', `KUBECONFIG=${insideKubeconfigPath}`],
  ];
}

const endWithParent = ['setpriv', '--pdeathsig', 'TERM'];

/** The file may be a link into /run, which is empty inside. */
const withResolvConf = `target=$(readlink -m /etc/resolv.conf)
if [ ! -e "$target" ]; then mkdir -p "\${target%/*}" && : >"$target"; fi
mount --bind "$0" "$target" && exec "$@"`;
