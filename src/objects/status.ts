import { isRecord } from './json.ts';

/** One entry of `details.causes` in a Status. */
export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

/** `details` of a Status. */
export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}

/** meta/v1 Status: the answer where there is no object to return. */
export interface Status {
  kind: 'Status';
  apiVersion: 'v1';
  metadata: { resourceVersion?: string; continue?: string; remainingItemCount?: number };
  status?: 'Success' | 'Failure';
  message?: string;
  reason?: string;
  details?: StatusDetails;
  code?: number;
}

/** Options of {@link StatusError}. */
export interface StatusErrorInit {
  details?: StatusDetails;
  /** `metadata.continue`, only for an expired continue token. */
  continueToken?: string;
  /** Extra HTTP headers, such as Allow or Retry-After. */
  headers?: Readonly<Record<string, string>>;
  cause?: unknown;
}

/**
 * A failed API request, on either side of the wire: the server throws it to answer with it, the client throws it for
 * such an answer. Constructors by name are in `status-errors.ts`.
 */
export class StatusError extends Error {
  override readonly name = 'StatusError';
  /** HTTP status, 400 to 599. */
  readonly code: number;
  /** The machine-readable reason (`metav1.StatusReason`), or "" where kube-apiserver sends none. */
  readonly reason: string;
  readonly details: StatusDetails | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly continueToken: string | undefined;

  constructor(code: number, reason: string, message: string, init: StatusErrorInit = {}) {
    super(message, init.cause === undefined ? undefined : { cause: init.cause });
    this.code = code;
    this.reason = reason;
    this.details = init.details;
    this.headers = init.headers ?? {};
    this.continueToken = init.continueToken;
  }

  /** The Status body, members in the order in which kube-apiserver writes them. */
  toStatus(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: this.continueToken === undefined ? {} : { continue: this.continueToken },
      status: 'Failure',
      message: this.message,
      ...(this.reason === '' ? {} : { reason: this.reason }),
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    };
  }
}

/** True when `value` looks like a Status object. */
export function isStatus(value: unknown): value is Status {
  return isRecord(value) && value['kind'] === 'Status' && value['apiVersion'] === 'v1';
}

/**
 * The errors that the API server answers, by name: code, reason and wording are kube-apiserver's (apimachinery
 * `api/errors/errors.go`). All StatusErrors for clients are made here.
 */

/** A group and a plural resource name; the core group is "". */
export interface GroupResource {
  group: string;
  resource: string;
}

/** `services`, or `endpointslices.discovery.k8s.io`. */
function qualified(resource: GroupResource): string {
  return resource.group === '' ? resource.resource : `${resource.resource}.${resource.group}`;
}

function detailsOf(resource: GroupResource, name: string): StatusDetails {
  return {
    ...(name === '' ? {} : { name }),
    ...(resource.group === '' ? {} : { group: resource.group }),
    ...(resource.resource === '' ? {} : { kind: resource.resource }),
  };
}

/** 404 for an object that does not exist. */
export function notFound(resource: GroupResource, name: string): StatusError {
  return new StatusError(404, 'NotFound', `${qualified(resource)} "${name}" not found`, {
    details: detailsOf(resource, name),
  });
}

/** 404 for a path below a known group version that names no resource. */
export function resourceNotFound(): StatusError {
  return new StatusError(404, 'NotFound', 'the server could not find the requested resource', {
    details: {},
  });
}

/** 409 for a create of a name that is taken. */
export function alreadyExists(resource: GroupResource, name: string, deleting = false): StatusError {
  const prefix = deleting ? 'object is being deleted: ' : '';
  return new StatusError(409, 'AlreadyExists', `${prefix}${qualified(resource)} "${name}" already exists`, {
    details: detailsOf(resource, name),
  });
}

/** 409 for a failed precondition. `resource` names the plural for a stale update, the Kind for a delete. */
export function conflict(resource: GroupResource, name: string, why: string): StatusError {
  return new StatusError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`,
    { details: detailsOf(resource, name) },
  );
}

/** The wording of a stale resourceVersion. */
export const modified =
  'the object has been modified; please apply your changes to the latest version and try again';

/** 403 for a request that is refused by a rule. */
export function forbidden(
  resource: GroupResource,
  name: string,
  why: string,
  causes?: StatusCause[],
): StatusError {
  const subject =
    name === '' ? `${qualified(resource)} is forbidden` : `${qualified(resource)} "${name}" is forbidden`;
  return new StatusError(403, 'Forbidden', `${subject}: ${why}`, {
    details: { ...detailsOf(resource, name), ...(causes === undefined ? {} : { causes }) },
  });
}

/** 401 for a missing or wrong credential. */
export function unauthorized(): StatusError {
  return new StatusError(401, 'Unauthorized', 'Unauthorized');
}

/** 400 with the given text. */
export function badRequest(message: string): StatusError {
  return new StatusError(400, 'BadRequest', message);
}

/** 405 for a verb that the resource does not have. `allow` lists HTTP methods. */
export function methodNotAllowed(allow: readonly string[] = []): StatusError {
  return new StatusError(
    405,
    'MethodNotAllowed',
    'the server does not allow this method on the requested resource',
    { details: {}, ...(allow.length === 0 ? {} : { headers: { Allow: allow.join(', ') } }) },
  );
}

/** 405 for a verb that the objects of a custom resource lack (`NewMethodNotSupported`). */
export function methodNotSupported(resource: GroupResource, verb: string): StatusError {
  const message = `${verb} is not supported on resources of kind ${JSON.stringify(qualified(resource))}`;
  return new StatusError(405, 'MethodNotAllowed', message, { details: detailsOf(resource, '') });
}

/** 406: nothing that the client accepts can be written. `details` as go-restful's gate answers, which has them empty. */
export function notAcceptable(message: string, details?: StatusDetails): StatusError {
  return new StatusError(406, 'NotAcceptable', message, details === undefined ? {} : { details });
}

/** 415: the body is in a form that cannot be read. `details` as go-restful's gate answers, which has them empty. */
export function unsupportedMediaType(message: string, details?: StatusDetails): StatusError {
  return new StatusError(415, 'UnsupportedMediaType', message, details === undefined ? {} : { details });
}

/** 503: the target of the request cannot be reached now. */
export function serviceUnavailable(message: string): StatusError {
  return new StatusError(503, 'ServiceUnavailable', message);
}

/** 410 for a resource version that is no longer kept. */
export function expired(message: string, continueToken?: string): StatusError {
  return new StatusError(410, 'Expired', message, continueToken === undefined ? {} : { continueToken });
}

/** 413 for a body over the limit. `message` names the limit. */
export function tooLarge(message: string): StatusError {
  return new StatusError(413, 'RequestEntityTooLarge', message);
}

/** 431 for headers over a limit. `message` names the limit. */
export function headersTooLarge(message: string): StatusError {
  return new StatusError(431, 'RequestHeaderFieldsTooLarge', message);
}

/** 429 with Retry-After in whole seconds. */
export function tooManyRequests(message: string, retryAfterSeconds: number): StatusError {
  return new StatusError(429, 'TooManyRequests', message, {
    details: { retryAfterSeconds },
    headers: { 'Retry-After': String(retryAfterSeconds) },
  });
}

/** 500 for a failure of the server with a cause. */
export function internalError(message: string, cause?: unknown): StatusError {
  return new StatusError(500, 'InternalError', `Internal error occurred: ${message}`, {
    details: { causes: [{ message }] },
    ...(cause === undefined ? {} : { cause }),
  });
}

/** 500 as kube-apiserver answers a plain Go error that no rule turned into a Status: no details, no reason. */
export function plainError(message: string): StatusError {
  return new StatusError(500, '', message);
}

/** 504 for a request that took too long (apimachinery NewTimeoutError). */
export function timedOut(why: string): StatusError {
  return new StatusError(504, 'Timeout', `Timeout: ${why}`, { details: {} });
}

/** 504 for a resource version from the future. @param retryAfterSeconds 0: no Retry-After. */
export function resourceVersionTooLarge(
  requested: number | bigint,
  current: number,
  retryAfterSeconds = 1,
): StatusError {
  return new StatusError(
    504,
    'Timeout',
    `Timeout: Too large resource version: ${requested}, current: ${current}`,
    {
      details: {
        causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
        ...(retryAfterSeconds === 0 ? {} : { retryAfterSeconds }),
      },
    },
  );
}

/** What was thrown, as text: the message of an error, anything else as a string. */
export function errorMessage(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
