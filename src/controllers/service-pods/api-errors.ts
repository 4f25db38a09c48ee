import { StatusError } from '../../objects/status.ts';

/** True for the answer that an object does not exist. */
export function isNotFound(error: unknown): boolean {
  return error instanceof StatusError && error.code === 404;
}

/** True for the answer that a precondition or a resourceVersion no longer holds, or that a name is taken. */
export function isConflict(error: unknown): boolean {
  return error instanceof StatusError && error.code === 409;
}

/** True when a create was refused because its namespace is being emptied. */
export function isNamespaceTerminating(error: unknown): boolean {
  return (
    error instanceof StatusError &&
    error.code === 403 &&
    (error.details?.causes ?? []).some((cause) => cause.reason === 'NamespaceTerminating')
  );
}
