import { StatusError } from '../objects/status.ts';

/** True when a create was refused because its namespace is being emptied. */
export function isNamespaceTerminating(error: unknown): boolean {
  return (
    error instanceof StatusError &&
    error.code === 403 &&
    (error.details?.causes ?? []).some((cause) => cause.reason === 'NamespaceTerminating')
  );
}
