/** The environment of a container (pkg/kubelet/kubelet_pods.go, pkg/kubelet/envvars; third_party/forked/golang/expansion). */
import type {
  ConfigMap,
  Container,
  EnvVarSource,
  Node,
  Pod,
  Secret,
  Service,
} from '../../objects/types/core.generated.ts';
import { containerNamed, podField, resourceField } from './plan-downward.ts';

/** The objects that a Pod refers to, as they are now: undefined for one that does not exist. */
export interface ReferencedObjects {
  configMap(name: string): ConfigMap | undefined;
  secret(name: string): Secret | undefined;
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

/** Variables by name. @throws {ContainerConfigError} */
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

/** Replaces `$(NAME)` by the first variable of that name; `$$` is a dollar, and unknown names stay. */
export function expand(text: string, variables: readonly ReadonlyMap<string, string>[]): string {
  return text.replace(/\$(?:\$|\(([^)]*)\))/g, (all, name: string | undefined) => {
    if (name === undefined) return '$';
    for (const map of variables) {
      const value = map.get(name);
      if (value !== undefined) return value;
    }
    return all;
  });
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
