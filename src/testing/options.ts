import type { RefuseRequest } from '../apiserver/http/exchange.ts';
import { localChoices } from '../commands/choices.ts';
import { addressRanges, clusterCidrs, podRanges, rangesOfFamilies } from '../flags/addresses.ts';
import {
  boolean,
  ConfigError,
  type FlagReader,
  nonEmpty,
  oneOf,
  optional,
  readValue,
  text,
  WrongValue,
} from '../flags/readers.ts';
import { defaultAttachmentSettings, nodePortRange, readServiceCidrs } from '../flags/shared.ts';
import { existingPrograms, imageChoices } from '../flags/images.ts';
import {
  authorizationModes,
  bearerToken,
  containerModes,
  gatewayApis,
  type LocalClusterConfig,
  platforms,
} from '../flags/up.ts';
import { isRecord } from '../objects/json.ts';
import { type LogLevel, logLevels } from '../telemetry/log-words.ts';

/** Options of `startApiServer`; all have defaults. */
export interface TestServerOptions {
  /** One CIDR, or two of different families with a comma between; default `10.96.0.0/16`. */
  readonly serviceClusterIpRange?: string | undefined;
  /** Default `30000-32767`. */
  readonly serviceNodePortRange?: string | undefined;
  /** Default `AlwaysAllow`. */
  readonly authorizationMode?: 'AlwaysAllow' | 'RBAC' | undefined;
  /**
   * What allocates addresses and node ports of Services; default `server`. With `controller` they are stored
   * without, and the controller `service-allocation` allocates them, if it runs.
   */
  readonly allocation?: 'server' | 'controller' | undefined;
  /** The administrator's bearer token, at least 8 characters; default: a random one. */
  readonly token?: string | undefined;
  /**
   * `openshift` also serves the kinds of OpenShift's network, such as Route, EgressFirewall and EgressIP; default `kubernetes`.
   */
  readonly platform?: 'kubernetes' | 'openshift' | undefined;
  /**
   * `standard` serves the kinds of Gateway API's standard channel, unless its definitions in the data directory are newer;
   * default `none`.
   */
  readonly gatewayApi?: 'standard' | 'none' | undefined;
  /** Keeps everything in this directory; default: in memory. */
  readonly dataDirectory?: string | undefined;
  /** 0, the default, takes any free port. */
  readonly port?: number | undefined;
  /**
   * The controllers to run beside the server, as kube-controller-manager's `--controllers` (`*`, `name`, `-name`).
   * Default: all with `nodes`; else the load balancer with `addressPools`; else none.
   */
  readonly controllers?: readonly string[] | undefined;
  /** Simulated nodes, 0 to 1000, on which Deployments and other workloads run; default 0. */
  readonly nodes?: number | undefined;
  /**
   * Puts Pods into a network of namespaces, in which they answer; needs Linux, iproute2, nftables, and user namespaces or
   * root. Default false: Pods are only simulated.
   */
  readonly network?: boolean | undefined;
  /**
   * With `network`: runs the commands of containers as programs of this machine, in the network and a file system of their
   * Pod; `auto`: where this machine can hold them, and they see its programs and no other file of it; `processes`: with the
   * rights of this process. Default `off`.
   */
  readonly containers?: 'auto' | 'off' | 'processes' | undefined;
  /** With processes: what containers write to hostPath volumes is written to this machine. Default false: they are read-only. */
  readonly writableHostPaths?: boolean | undefined;
  /** Programs of images: `ghcr.io/shop/tool=agnhost`; other images keep the built-in server. */
  readonly images?: readonly string[] | undefined;
  /** The ranges of simulated Pods' addresses; default `10.244.0.0/16`, and `fd00:10:244::/56` with dual-stack; /14 and /54 for more than 256 nodes. */
  readonly clusterCidr?: string | undefined;
  /**
   * The addresses of Services of type LoadBalancer, if the load balancer runs: CIDRs and ranges. Default: a range
   * for documentation, such as `192.0.2.0/24`, that no interface of this machine has; empty: no pool.
   */
  readonly addressPools?: readonly string[] | undefined;
  /**
   * Answers requests with 429 or 503 and `Retry-After`, as kube-apiserver does when it is busy; undefined lets one
   * through. Default: none is refused.
   */
  readonly refuse?: RefuseRequest | undefined;
  /** Default `silent`. */
  readonly logLevel?: LogLevel | undefined;
}

/** What `startApiServer` starts: validated. */
export interface TestServerConfig extends LocalClusterConfig {
  readonly refuse: RefuseRequest | undefined;
  readonly logLevel: LogLevel;
}

const names: readonly (keyof TestServerOptions)[] = [
  'serviceClusterIpRange',
  'serviceNodePortRange',
  'authorizationMode',
  'allocation',
  'token',
  'platform',
  'gatewayApi',
  'dataDirectory',
  'port',
  'controllers',
  'nodes',
  'network',
  'containers',
  'writableHostPaths',
  'images',
  'clusterCidr',
  'addressPools',
  'refuse',
  'logLevel',
];

/** Checks options as strictly as flags. @throws {ConfigError} naming the option and what it takes. */
export function testServerConfig(options: unknown): TestServerConfig {
  const given = knownOptions(options);
  const read = <T>(name: keyof TestServerOptions, reader: FlagReader<T>): T =>
    readValue(`startApiServer: ${name}`, reader, given[name]);
  const serviceCidrs = read('serviceClusterIpRange', or('10.96.0.0/16', readServiceCidrs));
  const families = serviceCidrs.map(({ range }) => range.family);
  const nodes = read('nodes', or(0, wholeNumber(1000)));
  const allocation = read('allocation', or('server', oneOf('server', 'controller').read));
  const platform = read('platform', or('kubernetes', oneOf(...platforms).read));
  const addressPool = read(
    'addressPools',
    optional((value) => rangesOfFamilies(addressRanges(texts(value)), families)),
  );
  const usual = nodes > 0 ? ['*'] : addressPool === undefined ? [] : ['load-balancer-controller'];
  return {
    bindAddress: '127.0.0.1',
    extraHosts: [],
    port: read('port', or(0, wholeNumber(65535))),
    serviceCidrs,
    nodePorts: read('serviceNodePortRange', or('30000-32767', nodePortRange)),
    token: read('token', optional(bearerToken)),
    authorizationMode: read('authorizationMode', or('AlwaysAllow', oneOf(...authorizationModes).read)),
    allocation,
    platform,
    gatewayApi: read('gatewayApi', or('none', oneOf(...gatewayApis).read)),
    dataDir: read('dataDirectory', optional(nonEmpty)),
    nodes,
    network: read('network', or(false, boolean)) ? 'on' : 'off',
    containers: read('containers', or('off', oneOf(...containerModes).read)),
    writableHostPaths: read('writableHostPaths', or(false, boolean)),
    hostPathRoots: [],
    missingImages: [],
    images: read('images', (value) => existingPrograms(imageChoices(value), localChoices)),
    clusterCidrs: read('clusterCidr', (value) => podRanges(optional(clusterCidrs)(value), families, nodes)),
    controllers: read(
      'controllers',
      or(usual, (value) => localChoices.selectControllers(texts(value), { nodes, allocation, platform })),
    ),
    attachments: defaultAttachmentSettings,
    addressPool,
    metrics: undefined,
    refuse: read('refuse', optional(refusal)),
    logLevel: read('logLevel', or('silent', oneOf(...logLevels).read)),
  };
}

/** @throws {ConfigError} for what is no object, and for names that no option has. */
function knownOptions(options: unknown): Readonly<Record<string, unknown>> {
  const known = `the options are ${names.join(', ')}`;
  if (!isRecord(options)) throw new ConfigError(`startApiServer: takes an object; ${known}`);
  const unknown = Object.keys(options).filter((name) => !names.some((option) => option === name));
  if (unknown.length > 0)
    throw new ConfigError(`startApiServer: unknown option ${unknown.join(', ')}; ${known}`);
  return options;
}

/** Reads the default of an option. */
function or<T>(fallback: unknown, reader: FlagReader<T>): FlagReader<T> {
  return (value) => reader(value === undefined ? fallback : value);
}

/** A number from 0 on. @param most included. */
function wholeNumber(most: number): FlagReader<number> {
  return (value) => {
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= most) return value;
    throw new WrongValue(`must be a whole number from 0 to ${most}`);
  };
}

function refusal(value: unknown): RefuseRequest {
  if (!isRefusal(value)) throw new WrongValue('must be a function');
  return value;
}

/** The compiler alone checks its result. */
function isRefusal(value: unknown): value is RefuseRequest {
  return typeof value === 'function';
}

function texts(value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw new WrongValue('must be a list of texts');
  return value.map(text);
}
