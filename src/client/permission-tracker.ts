import type { Logger } from 'pino';
import { StatusError } from '../objects/status.ts';
import type { HealthCheck } from '../telemetry/health.ts';
import type { Clock } from './clock.ts';
import type { ApiResponse, ApiStream, RequestOptions, StreamOptions, Transport } from './transport.ts';

/** A request in the terms of RBAC rules. */
interface Permission {
  readonly verb: string;
  /** `services`, `services/status`. */
  readonly resource: string;
  /** "" for the core group. */
  readonly group: string;
  /** Absent: all namespaces, or none. */
  readonly namespace?: string;
}

interface Refusal extends Permission {
  /** Of the last refusal, in monotonic milliseconds. */
  readonly at: number;
}

/** Milliseconds without a new refusal after which one is dropped: callers retry more often than that. */
const rememberedMs = 1_800_000;

/**
 * A transport that notices what the API server refuses (403). It logs one line for each verb and resource with what to
 * do, and has a readiness check that fails until the same is allowed. Callers still get the error, and retry slowly.
 */
export class PermissionTracker implements Transport {
  readonly server: string;
  readonly #transport: Transport;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #refused = new Map<string, Refusal>();

  constructor(transport: Transport, log: Logger, clock: Clock) {
    this.server = transport.server;
    this.#transport = transport;
    this.#log = log;
    this.#clock = clock;
  }

  request(method: string, path: string, options: RequestOptions = {}): Promise<ApiResponse> {
    return this.#note(permissionOf(method, path), this.#transport.request(method, path, options));
  }

  stream(path: string, options: StreamOptions = {}): Promise<ApiStream> {
    const permission = permissionOf('GET', path);
    return this.#note(permission && { ...permission, verb: 'watch' }, this.#transport.stream(path, options));
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  /** Fails while something is refused, except for Events. */
  healthCheck(): HealthCheck {
    return {
      name: 'permissions',
      check: () => {
        this.#forgetOld();
        const missing = [...this.#refused.values()].filter(({ resource }) => resource !== 'events');
        return missing.length === 0 ? undefined : `not allowed: ${missing.map(phrase).join('; ')}`;
      },
    };
  }

  /** Drops refusals that are not repeated, e.g. because their namespace is gone: they would never be allowed. */
  #forgetOld(): void {
    const now = this.#clock.monotonic();
    for (const [name, { at }] of this.#refused) if (now - at > rememberedMs) this.#refused.delete(name);
  }

  async #note<R>(permission: Permission | undefined, answer: Promise<R>): Promise<R> {
    if (permission === undefined) return answer;
    const name = phrase(permission);
    try {
      const result = await answer;
      if (this.#refused.delete(name)) this.#log.info(permission, 'the API server allows it now');
      return result;
    } catch (error) {
      if (isRefusal(error)) {
        this.#forgetOld();
        const isKnown = this.#refused.has(name);
        this.#refused.set(name, { ...permission, at: this.#clock.monotonic() });
        if (!isKnown) {
          this.#log.error(
            { ...permission, reason: error.message },
            `not allowed to ${name}: grant it to this identity in a ClusterRole; trying again slowly`,
          );
        }
      }
      throw error;
    }
  }
}

/**
 * A 403 of the authorizer; those of admission (a terminating namespace, a quota) have causes or say so in the message.
 */
function isRefusal(error: unknown): error is StatusError {
  return (
    error instanceof StatusError &&
    error.code === 403 &&
    error.details?.causes === undefined &&
    error.message.includes('cannot ')
  );
}

/** `patch services/status in namespace a`, `list ipaddresses.networking.k8s.io`. */
function phrase({ verb, resource, group, namespace }: Permission): string {
  const [plural = '', subresource] = resource.split('/');
  const full = [plural, ...(group === '' ? [] : [group])].join('.');
  const below = subresource === undefined ? '' : `/${subresource}`;
  return `${verb} ${full}${below}${namespace === undefined ? '' : ` in namespace ${namespace}`}`;
}

const writes = new Map([
  ['POST', 'create'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
]);

/** The permission that a request needs; undefined for paths that name no resource. */
function permissionOf(method: string, path: string): Permission | undefined {
  const parts = path.split('/').slice(1);
  const core = parts[0] === 'api';
  if (!core && parts[0] !== 'apis') return undefined;
  const rest = parts.slice(core ? 2 : 3);
  const scoped = rest[0] === 'namespaces' && rest.length > 2 && !namespaceParts.has(rest[2] ?? '');
  const [plural, name, subresource] = scoped ? rest.slice(2) : rest;
  if (plural === undefined || plural === '') return undefined;
  return {
    verb: writes.get(method) ?? (name === undefined ? 'list' : 'get'),
    resource: subresource === undefined ? plural : `${plural}/${subresource}`,
    group: core ? '' : (parts[1] ?? ''),
    ...(scoped ? { namespace: rest[1] ?? '' } : {}),
  };
}

/** Subresources of a Namespace: `/namespaces/a/status` names no resource in it. */
const namespaceParts = new Set(['status', 'finalize']);
