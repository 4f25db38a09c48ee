import type {
  Container,
  HTTPGetAction,
  LifecycleHandler,
  Probe,
} from '../../../objects/types/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../../validation/field-errors.ts';
import { validatePortNumberOrName } from '../../validation/network.ts';

const handlers = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'] as const;
const schemes = ['HTTP', 'HTTPS'];

/**
 * Lifecycle hooks, then probes (`validateContainers`).
 *
 * @param gracePeriod the Pod's, in seconds, the limit of a sleep hook.
 */
export function validateHandlers(
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
