import { StatusError } from '../../objects/status.ts';

/** A response with Retry-After. */
export interface Refusal {
  readonly code: 429 | 503;
  /** Whole seconds, from 0; in the header `Retry-After`, and in the Status unless it is 0. */
  readonly retryAfterSeconds: number;
  /** Default: kube-apiserver's text just after a CustomResourceDefinition was created. */
  readonly message?: string;
}

/**
 * Decides for each request whether it is refused before anything is done: how a client fares with a server that is
 * busy. Undefined lets it through.
 */
export type RefuseRequest = (request: {
  readonly method: string;
  readonly path: string;
}) => Refusal | undefined;

/** The refusal as an answer (apiserver `endpoints/handlers/responsewriters/errors.go`). */
export function refusalError({
  code,
  retryAfterSeconds,
  message = 'storage is (re)initializing',
}: Refusal): StatusError {
  return new StatusError(code, code === 429 ? 'TooManyRequests' : 'ServiceUnavailable', message, {
    ...(retryAfterSeconds > 0 ? { details: { retryAfterSeconds } } : {}),
    headers: { 'Retry-After': String(retryAfterSeconds) },
  });
}
