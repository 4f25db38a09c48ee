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
