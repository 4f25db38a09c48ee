import type {
  Container,
  Node,
  PersistentVolumeSpec,
  Pod,
  ResourceFieldSelector,
  ConfigMap,
  EnvVarSource,
  Secret,
  Service,
} from '../../objects/types/core.generated.ts';
import type { ClusterTrustBundle } from '../../objects/types/certificates.generated.ts';
import type { VolumeClaim } from '../../objects/pods.ts';
import { compareText } from '../../objects/formats/go-text.ts';
import { parseQuantity } from '../../objects/formats/quantity.ts';

/** A field of a Pod by its path (pkg/fieldpath); undefined for one that the downward API does not have. */
export function podField(pod: Pod, path: string): string | undefined {
  const { metadata, spec, status } = pod;
  const [, map, key] = /^metadata\.(annotations|labels)\['(.*)'\]$/.exec(path) ?? [];
  if (map === 'annotations') return metadata.annotations?.[key ?? ''] ?? '';
  if (map === 'labels') return metadata.labels?.[key ?? ''] ?? '';
  switch (path) {
    case 'metadata.name':
      return metadata.name ?? '';
    case 'metadata.namespace':
      return metadata.namespace ?? '';
    case 'metadata.uid':
      return metadata.uid ?? '';
    case 'metadata.annotations':
      return formatMap(metadata.annotations);
    case 'metadata.labels':
      return formatMap(metadata.labels);
    case 'spec.nodeName':
      return spec.nodeName ?? '';
    case 'spec.serviceAccountName':
      return spec.serviceAccountName ?? '';
    case 'status.hostIP':
      return status.hostIP ?? '';
    case 'status.hostIPs':
      return (status.hostIPs ?? []).map(({ ip }) => ip).join(',');
    case 'status.podIP':
      return status.podIP ?? '';
    case 'status.podIPs':
      return (status.podIPs ?? []).map(({ ip }) => ip).join(',');
    default:
      return undefined;
  }
}

/** `key="value"` by line, sorted. */
function formatMap(map: Readonly<Record<string, string>> = {}): string {
  return Object.entries(map)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}\n`)
    .join('');
}

/**
 * The limit or request of a container, or its node's allocatable resource; in units of the divisor, rounded up
 * (pkg/api/v1/resource). Undefined for other resources.
 */
export function resourceField(
  { resource, divisor = '0' }: ResourceFieldSelector,
  { resources }: Container,
  node: Node,
): string | undefined {
  const [kind = '', ...rest] = resource.split('.');
  const name = rest.join('.');
  if ((kind !== 'limits' && kind !== 'requests') || name === '') return undefined;
  const own = resources?.[kind]?.[name];
  const fallback = kind === 'limits' ? node.status.allocatable?.[name] : undefined;
  const unit = parseQuantity(divisor).nanos;
  const nanos = parseQuantity(own ?? fallback ?? '0').nanos;
  const by = unit === 0n ? 1_000_000_000n : unit;
  return String((nanos + by - 1n) / by);
}

/** The container that a reference names; the first where it names none. */
export function containerNamed({ spec }: Pod, name: string | undefined): Container | undefined {
  const all = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  return name === undefined ? spec.containers?.[0] : all.find((container) => container.name === name);
}

/** The objects that a Pod refers to, as they are now: undefined for one that does not exist. */
export interface ReferencedObjects {
  configMap(name: string): ConfigMap | undefined;
  secret(name: string): Secret | undefined;
  /** The trust bundle of a name. */
  trustBundle?(name: string): ClusterTrustBundle | undefined;
  /** All trust bundles of a signer. */
  trustBundlesOf?(signerName: string): readonly ClusterTrustBundle[];
  /** The volume that a claim is bound to. */
  volumeOf?(claim: VolumeClaim): PersistentVolumeSpec | undefined;
}

export interface EnvironmentInput {
  /** With the addresses in its status. */
  readonly pod: Pod;
  readonly container: Container;
  readonly node: Node;
  /** All Services whose addresses its environment may have. */
  readonly services: Iterable<Service>;
  readonly objects: ReferencedObjects;
}

/** A container cannot be configured: what it refers to is missing. The message is the kubelet's. */
export class ContainerConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * The environment of a container: variables by name (pkg/kubelet/kubelet_pods.go, pkg/kubelet/envvars).
 *
 * @throws {ContainerConfigError}
 */
export function planEnvironment(input: EnvironmentInput): ReadonlyMap<string, string> {
  const { container, pod } = input;
  const links = serviceVariables(input.services, pod);
  const result = new Map<string, string>();
  for (const { prefix = '', configMapRef, secretRef } of container.envFrom ?? []) {
    const data =
      configMapRef === undefined
        ? secretRef === undefined
          ? {}
          : secretData(input, secretRef.name ?? '', secretRef.optional === true)
        : configData(input, configMapRef.name ?? '', configMapRef.optional === true);
    for (const [key, value] of Object.entries(data)) {
      if (isVariable(`${prefix}${key}`)) result.set(`${prefix}${key}`, value);
    }
  }
  for (const { name, value = '', valueFrom } of container.env ?? []) {
    const found = valueFrom === undefined ? expand(value, [result, links]) : valueOf(input, valueFrom);
    if (found !== undefined) result.set(name, found);
  }
  for (const [name, value] of links) if (!result.has(name)) result.set(name, value);
  return result;
}

function isVariable(name: string): boolean {
  return /^[ -<>-~]+$/.test(name);
}

function configData(
  { objects }: EnvironmentInput,
  name: string,
  optional: boolean,
): Readonly<Record<string, string>> {
  const map = objects.configMap(name);
  if (map === undefined && !optional) throw new ContainerConfigError(`configmap "${name}" not found`);
  return map?.data ?? {};
}

function secretData(
  { objects }: EnvironmentInput,
  name: string,
  optional: boolean,
): Readonly<Record<string, string>> {
  const secret = objects.secret(name);
  if (secret === undefined && !optional) throw new ContainerConfigError(`secret "${name}" not found`);
  return Object.fromEntries(
    Object.entries(secret?.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
  );
}

/** Undefined: what is optional is not there. */
function valueOf(input: EnvironmentInput, source: EnvVarSource): string | undefined {
  const { pod, node, container } = input;
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = source;
  if (fieldRef !== undefined) {
    const value = podField(pod, fieldRef.fieldPath);
    if (value === undefined) throw new ContainerConfigError(`unsupported fieldPath: ${fieldRef.fieldPath}`);
    return value;
  }
  if (resourceFieldRef !== undefined) {
    const { containerName } = resourceFieldRef;
    const of =
      containerName === undefined || containerName === '' ? container : containerNamed(pod, containerName);
    const value = of === undefined ? undefined : resourceField(resourceFieldRef, of, node);
    if (value === undefined)
      throw new ContainerConfigError(`unsupported container resource : ${resourceFieldRef.resource}`);
    return value;
  }
  const namespace = pod.metadata.namespace ?? '';
  if (configMapKeyRef !== undefined) {
    const { name = '', key, optional = false } = configMapKeyRef;
    const value = configData(input, name, optional)[key];
    if (value === undefined && !optional) {
      throw new ContainerConfigError(`couldn't find key ${key} in ConfigMap ${namespace}/${name}`);
    }
    return value;
  }
  if (secretKeyRef !== undefined) {
    const { name = '', key, optional = false } = secretKeyRef;
    const value = secretData(input, name, optional)[key];
    if (value === undefined && !optional) {
      throw new ContainerConfigError(`couldn't find key ${key} in Secret ${namespace}/${name}`);
    }
    return value;
  }
  return undefined;
}

const variable = /\$(?:\$|\(([^)]*)\))/g;

/**
 * Replaces `$(NAME)` by the first variable of that name; `$$` is a dollar, and unknown names stay
 * (third_party/forked/golang/expansion).
 */
export function expand(text: string, variables: readonly ReadonlyMap<string, string>[]): string {
  return text.replace(variable, (all, name: string | undefined) => {
    if (name === undefined) return '$';
    for (const map of variables) {
      const value = map.get(name);
      if (value !== undefined) return value;
    }
    return all;
  });
}

/**
 * A container whose mounts have their `subPathExpr` as a `subPath` (kubelet `ExpandContainerVolumeMounts`).
 *
 * @param environment of {@link planEnvironment}.
 * @throws {ContainerConfigError} for a variable that is missing or empty, and for a path that leads out of the volume.
 */
export function withSubPaths(container: Container, environment: ReadonlyMap<string, string>): Container {
  const { volumeMounts = [] } = container;
  if (volumeMounts.every(({ subPathExpr = '' }) => subPathExpr === '')) return container;
  return {
    ...container,
    volumeMounts: volumeMounts.map(({ subPathExpr = '', ...mount }) =>
      subPathExpr === '' ? mount : { ...mount, subPath: expandedSubPath(subPathExpr, environment) },
    ),
  };
}

function expandedSubPath(expression: string, environment: ReadonlyMap<string, string>): string {
  const missing = new Set<string>();
  const path = expression.replace(variable, (_, name: string | undefined) => {
    if (name === undefined) return '$';
    const value = environment.get(name) ?? '';
    if (value === '') missing.add(name);
    return value;
  });
  if (missing.size > 0) {
    const names = [...missing].sort(compareText).join(', ');
    throw new ContainerConfigError(`missing value for ${names}`);
  }
  if (path.startsWith('/')) {
    throw new ContainerConfigError(`error SubPath \`${path}\` must not be an absolute path`);
  }
  if (path.split('/').includes('..')) {
    throw new ContainerConfigError(`unable to provision SubPath \`${path}\`: must not contain '..'`);
  }
  return path;
}

/** Those of the Services of the Pod's namespace, and always of `default/kubernetes`. */
function serviceVariables(services: Iterable<Service>, { metadata, spec }: Pod): Map<string, string> {
  const variables = new Map<string, string>();
  const chosen = new Map<string, Service>();
  for (const service of services) {
    const { name = '', namespace = '' } = service.metadata;
    const isMaster = namespace === 'default' && name === 'kubernetes';
    const isLinked = namespace === metadata.namespace && spec.enableServiceLinks !== false;
    if (!isMaster && !isLinked) continue;
    if (isLinked || !chosen.has(name)) chosen.set(name, service);
  }
  for (const {
    metadata: { name = '' },
    spec: { clusterIP = '', ports = [], type },
  } of chosen.values()) {
    const [first] = ports;
    if (clusterIP === '' || clusterIP === 'None' || type === 'ExternalName' || first === undefined) continue;
    const prefix = name.toUpperCase().replaceAll('-', '_');
    variables.set(`${prefix}_SERVICE_HOST`, clusterIP);
    variables.set(`${prefix}_SERVICE_PORT`, String(first.port));
    for (const port of ports) {
      const portName = (port.name ?? '').toUpperCase().replaceAll('-', '_');
      if (portName !== '') variables.set(`${prefix}_SERVICE_PORT_${portName}`, String(port.port));
    }
    const host = clusterIP.includes(':') ? `[${clusterIP}]` : clusterIP;
    for (const [index, { protocol = 'TCP', port }] of ports.entries()) {
      const url = `${protocol.toLowerCase()}://${host}:${port}`;
      const link = `${prefix}_PORT_${port}_${protocol}`;
      if (index === 0) variables.set(`${prefix}_PORT`, url);
      variables.set(link, url);
      variables.set(`${link}_PROTO`, protocol.toLowerCase());
      variables.set(`${link}_PORT`, String(port));
      variables.set(`${link}_ADDR`, clusterIP);
    }
  }
  return variables;
}
