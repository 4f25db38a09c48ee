import type {
  Container,
  HTTPGetAction,
  LifecycleHandler,
  Probe,
  ContainerPort,
  PodSpec,
  ResourceRequirements,
} from '../../../objects/types/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
  duplicate,
} from '../../validation/field-errors.ts';
import { validatePortNumberOrName, isValidPortNumber } from '../../validation/network.ts';
import { compareQuantities, quantityIn } from '../../../objects/formats/quantity.ts';
import { isValidPortName } from '../../../objects/names.ts';
import {
  validateResourceQuantity,
  isHugePage,
  mayBeOvercommitted,
  validateContainerResourceName,
} from '../../validation/names.ts';
import { validateEnv, validateEnvFrom } from './env.ts';
import { pushChoiceErrors, pushLabelErrors, validateRestartRules } from './field-checks.ts';
import { validateContainerSecurity } from './security-context.ts';
import { pullPolicies, validateDevices, validateMounts } from './volumes.ts';

const handlers = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'] as const;
const schemes = ['HTTP', 'HTTPS'];

/**
 * Lifecycle hooks, then probes (`validateContainers`).
 *
 * @param gracePeriod the Pod's, in seconds, the limit of a sleep hook.
 */
function validateHandlers(
  { lifecycle, livenessProbe, readinessProbe, startupProbe }: Container,
  path: string,
  gracePeriod: number | undefined,
): FieldError[] {
  const errors: FieldError[] = [];
  for (const hook of ['postStart', 'preStop'] as const) {
    const handler = lifecycle?.[hook];
    if (handler === undefined) continue;
    pushAll(errors, validateHandler(handler, `${path}.lifecycle.${hook}`, gracePeriod));
  }
  pushAll(errors, validateProbe(livenessProbe, `${path}.livenessProbe`));
  pushAll(errors, validateSuccessOnce(livenessProbe, `${path}.livenessProbe`));
  pushAll(errors, validateProbe(readinessProbe, `${path}.readinessProbe`));
  const seconds = readinessProbe?.terminationGracePeriodSeconds;
  if (seconds !== undefined) {
    const at = `${path}.readinessProbe.terminationGracePeriodSeconds`;
    errors.push(invalid(at, seconds, 'must not be set for readinessProbes'));
  }
  pushAll(errors, validateProbe(startupProbe, `${path}.startupProbe`));
  pushAll(errors, validateSuccessOnce(startupProbe, `${path}.startupProbe`));
  return errors;
}

function validateSuccessOnce(probe: Probe | undefined, path: string): FieldError[] {
  if (probe === undefined || probe.successThreshold === 1) return [];
  return [invalid(`${path}.successThreshold`, probe.successThreshold ?? 0, 'must be 1')];
}

/** One handler, and numbers that are not negative (`validateProbe`). */
function validateProbe(probe: Probe | undefined, path: string): FieldError[] {
  if (probe === undefined) return [];
  const errors = validateHandler(probe, path, undefined);
  const numbers = [
    'initialDelaySeconds',
    'timeoutSeconds',
    'periodSeconds',
    'successThreshold',
    'failureThreshold',
  ] as const;
  for (const member of numbers) {
    const value = probe[member] ?? 0;
    if (value < 0) errors.push(invalid(`${path}.${member}`, value, 'must be greater than or equal to 0'));
  }
  const seconds = probe.terminationGracePeriodSeconds;
  if (seconds !== undefined && seconds <= 0) {
    errors.push(invalid(`${path}.terminationGracePeriodSeconds`, seconds, 'must be greater than 0'));
  }
  return errors;
}

/** Exactly one handler; only the first is checked further (`validateHandler`). */
/** A hook, or a probe, which has gRPC but no sleep. */
type Handler = LifecycleHandler & Pick<Probe, 'grpc'>;

function validateHandler(handler: Handler, path: string, gracePeriod: number | undefined): FieldError[] {
  const [first, ...more] = handlers.filter((member) => handler[member] !== undefined);
  if (first === undefined) return [required(path, 'must specify a handler type')];
  const errors = validateAction(handler, first, `${path}.${first}`, gracePeriod);
  for (const member of more) {
    errors.push(forbiddenField(`${path}.${member}`, 'may not specify more than 1 handler type'));
  }
  return errors;
}

function validateAction(
  { exec, httpGet, tcpSocket, grpc, sleep }: Handler,
  kind: (typeof handlers)[number],
  path: string,
  gracePeriod: number | undefined,
): FieldError[] {
  switch (kind) {
    case 'exec':
      return (exec?.command ?? []).length === 0 ? [required(`${path}.command`)] : [];
    case 'httpGet':
      return validateHttpGet(httpGet ?? { port: 0 }, path);
    case 'tcpSocket':
      return validatePortNumberOrName(tcpSocket?.port ?? 0, `${path}.port`);
    case 'grpc':
      return validatePortNumberOrName(grpc?.port ?? 0, `${path}.port`);
    case 'sleep': {
      const seconds = sleep?.seconds ?? 0;
      if (gracePeriod === undefined || (seconds >= 0 && seconds <= gracePeriod)) return [];
      const detail = `must be non-negative and less than terminationGracePeriodSeconds (${gracePeriod})`;
      return [invalid(path, seconds, detail)];
    }
  }
}

function validateHttpGet(
  { path: url = '', port, scheme = '', httpHeaders = [] }: HTTPGetAction,
  path: string,
): FieldError[] {
  const errors = url === '' ? [required(`${path}.path`)] : [];
  pushAll(errors, validatePortNumberOrName(port, `${path}.port`));
  if (!schemes.includes(scheme)) errors.push(notSupported(`${path}.scheme`, scheme, schemes));
  for (const { name = '' } of httpHeaders) {
    if (/^[-A-Za-z0-9]+$/.test(name)) continue;
    const detail =
      "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
    errors.push(invalid(`${path}.httpHeaders`, name, detail));
  }
  return errors;
}

const protocols = ['SCTP', 'TCP', 'UDP'];
const messagePolicies = ['File', 'FallbackToLogsOnError'];
const resizable = ['cpu', 'memory'];
const resizePolicies = ['NotRequired', 'RestartContainer'];

/** Regular containers (`validateContainers`). */
export function validateContainers(spec: PodSpec, path: string, old: PodSpec | undefined): FieldError[] {
  const { containers = [], terminationGracePeriodSeconds: gracePeriod } = spec;
  if (containers.length === 0) return [required(path)];
  const errors: FieldError[] = [];
  const names = new Set<string>();
  containers.forEach((container, i) => {
    const at = `${path}[${i}]`;
    pushAll(errors, validateContainer(container, spec, at, old));
    if (names.has(container.name)) errors.push(duplicate(`${at}.name`, container.name));
    names.add(container.name);
    pushAll(errors, validateHandlers(container, at, gracePeriod));
    pushAll(errors, validateRestartRules(container, at));
  });
  pushAll(errors, validateHostPorts(containers, path));
  return errors;
}

/** Init containers; those with restartPolicy Always are sidecars (`validateInitContainers`). */
export function validateInitContainers(spec: PodSpec, path: string, old: PodSpec | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set((spec.containers ?? []).map(({ name }) => name));
  const gracePeriod = spec.terminationGracePeriodSeconds;
  (spec.initContainers ?? []).forEach((container, i) => {
    const at = `${path}[${i}]`;
    pushAll(errors, validateContainer(container, spec, at, old));
    const { restartPolicy } = container;
    if (restartPolicy !== 'Always') pushAll(errors, validateRestartRules(container, at));
    else if ((container.restartPolicyRules ?? []).length > 0) {
      const detail = 'restartPolicyRules are not allowed for init containers with restart policy Always';
      errors.push(forbiddenField(`${at}.restartPolicyRules`, detail));
    }
    if (names.has(container.name)) errors.push(duplicate(`${at}.name`, container.name));
    else if (container.name !== '') names.add(container.name);
    pushAll(errors, validateHostPorts([container], path));
    if (restartPolicy === 'Always') {
      pushAll(errors, validateHandlers(container, at, gracePeriod));
      return;
    }
    for (const member of ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const) {
      if (container[member] === undefined) continue;
      const detail = 'may not be set for init containers without restartPolicy=Always';
      errors.push(forbiddenField(`${at}.${member}`, detail));
    }
  });
  return errors;
}

/** The rules of all kinds of containers (`validateContainerCommon`). @param old the stored spec, for an update. */
export function validateContainer(
  container: Partial<Container>,
  { volumes = [], restartPolicy, hostUsers }: PodSpec,
  path: string,
  old: PodSpec | undefined,
): FieldError[] {
  const { name = '', image = '', resources = {} } = container;
  const errors: FieldError[] = [];
  if (name === '') errors.push(required(`${path}.name`));
  else pushLabelErrors(errors, `${path}.name`, name);
  if (image === '') errors.push(required(`${path}.image`));
  const policyPath = `${path}.terminationMessagePolicy`;
  pushChoiceErrors(errors, policyPath, container.terminationMessagePolicy, messagePolicies);
  pushAll(errors, validatePorts(container.ports ?? [], `${path}.ports`));
  pushAll(errors, validateEnv(container.env ?? [], `${path}.env`));
  pushAll(errors, validateEnvFrom(container.envFrom ?? [], `${path}.envFrom`));
  pushAll(errors, validateMounts(container, volumes, `${path}.volumeMounts`));
  pushAll(errors, validateDevices(container, volumes, `${path}.volumeDevices`));
  pushChoiceErrors(errors, `${path}.imagePullPolicy`, container.imagePullPolicy, pullPolicies);
  pushAll(errors, validateResources(resources, `${path}.resources`));
  pushAll(errors, validateResizePolicy(container.resizePolicy ?? [], restartPolicy, `${path}.resizePolicy`));
  pushAll(
    errors,
    validateContainerSecurity(container.securityContext, `${path}.securityContext`, {
      hostUsers: hostUsers !== false,
      old,
    }),
  );
  return errors;
}

/** `resizePolicy`; errors are reported at the list. */
function validateResizePolicy(
  policies: NonNullable<Container['resizePolicy']>,
  podRestartPolicy: string | undefined,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  policies.forEach(({ resourceName, restartPolicy }, i) => {
    if (seen.has(resourceName)) errors.push(duplicate(`${path}[${i}]`, resourceName));
    seen.add(resourceName);
    pushChoiceErrors(errors, path, resourceName, resizable);
    pushChoiceErrors(errors, path, restartPolicy, resizePolicies);
    if (podRestartPolicy === 'Never' && restartPolicy !== 'NotRequired') {
      const detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
      errors.push(invalid(path, restartPolicy, detail));
    }
  });
  return errors;
}

function validatePorts(ports: readonly Partial<ContainerPort>[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  ports.forEach(({ name = '', containerPort = 0, hostPort = 0, protocol }, i) => {
    const at = `${path}[${i}]`;
    if (name !== '') {
      const faults = isValidPortName(name);
      for (const message of faults) errors.push(invalid(`${at}.name`, name, message));
      if (faults.length === 0 && names.has(name)) errors.push(duplicate(`${at}.name`, name));
      names.add(name);
    }
    if (containerPort === 0) errors.push(required(`${at}.containerPort`));
    else pushPortErrors(errors, `${at}.containerPort`, containerPort);
    if (hostPort !== 0) pushPortErrors(errors, `${at}.hostPort`, hostPort);
    pushChoiceErrors(errors, `${at}.protocol`, protocol, protocols);
  });
  return errors;
}

function pushPortErrors(errors: FieldError[], path: string, port: number): void {
  for (const message of isValidPortNumber(port)) errors.push(invalid(path, port, message));
}

/** Each host port is used by one container only (`checkHostPortConflicts`). */
function validateHostPorts(containers: readonly Container[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const taken = new Set<string>();
  containers.forEach(({ ports = [] }, i) =>
    ports.forEach(({ hostPort = 0, hostIP = '', protocol = '' }, j) => {
      if (hostPort === 0) return;
      const port = `${protocol}/${hostIP}/${hostPort}`;
      if (taken.has(port)) errors.push(duplicate(`${path}[${i}].ports[${j}].hostPort`, port));
      taken.add(port);
    }),
  );
  return errors;
}

/** The resources of a container (`ValidateContainerResourceRequirements`). */
export function validateResources(resources: ResourceRequirements, path: string): FieldError[] {
  return validateRequirements(resources, path, validateContainerResourceName);
}

/**
 * Quantities are valid, no request exceeds its limit, and huge pages are whole and come with cpu or memory
 * (`validateResourceRequirements`).
 *
 * @param validateName the rule of the names of resources.
 */
export function validateRequirements(
  { limits = {}, requests = {} }: ResourceRequirements,
  path: string,
  validateName: (resource: string, path: string) => FieldError[],
): FieldError[] {
  const validateResource = (resource: string, value: string, at: string): FieldError[] => [
    ...validateName(resource, at),
    ...validateResourceQuantity(resource, value, at),
  ];
  const errors: FieldError[] = [];
  for (const [resource, value] of Object.entries(limits)) {
    const at = `${path}.limits[${resource}]`;
    pushAll(errors, validateResource(resource, value, at), validateHugePages(resource, value, at));
  }
  for (const [resource, value] of Object.entries(requests)) {
    const at = `${path}.requests[${resource}]`;
    const limit = Object.hasOwn(limits, resource) ? limits[resource] : undefined;
    pushAll(
      errors,
      validateResource(resource, value, at),
      validateRequest(resource, value, limit, path),
      validateHugePages(resource, value, at),
    );
  }
  const names = Object.keys({ ...limits, ...requests });
  if (names.some(isHugePage) && !names.includes('cpu') && !names.includes('memory')) {
    errors.push(forbiddenField(path, 'HugePages require cpu or memory'));
  }
  return errors;
}

/** A request against its limit: for some resources they must be equal. */
function validateRequest(
  resource: string,
  value: string,
  limit: string | undefined,
  path: string,
): FieldError[] {
  const overcommitted = mayBeOvercommitted(resource);
  if (limit === undefined) {
    if (overcommitted) return [];
    return [required(`${path}.limits`, 'Limit must be set for non overcommitable resources')];
  }
  const order = compareQuantities(value, limit);
  if (order === 0 || (overcommitted && order < 0)) return [];
  const relation = overcommitted ? 'less than or equal' : 'equal';
  return [invalid(`${path}.requests`, value, `must be ${relation} to ${resource} limit of ${limit}`)];
}

/** Huge pages come in whole pages (`validateResourceQuantityHugePageValue`). */
function validateHugePages(resource: string, value: string, path: string): FieldError[] {
  if (!isHugePage(resource) || isMultiple(value, resource.slice('hugepages-'.length))) return [];
  return [invalid(path, value, `${value} is not positive integer multiple of ${resource}`)];
}

function isMultiple(value: string, page: string): boolean {
  let size: bigint;
  try {
    if (quantityIn(page, 'thousandths') % 1000n !== 0n) return false;
    size = quantityIn(page, 'units');
  } catch {
    return false;
  }
  return size > 0n && quantityIn(value, 'units') % size === 0n;
}
