import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import { StatusError, type StatusCause, type StatusDetails } from '../../../objects/status.ts';

/** The answer to a write that a webhook denied (`webhookerrors.ToStatusErr`): its own Status, within bounds. */
export function deniedBy(webhook: string, result: JsonRecord): StatusError {
  const { code, reason, message, details } = result;
  const denied = `admission webhook ${JSON.stringify(webhook)} denied the request`;
  const why = text(message) || text(reason);
  // A denial is never a success, and clients accept no code above 599.
  const status = typeof code === 'number' && code >= 400 && code <= 599 ? Math.trunc(code) : 400;
  return new StatusError(
    status,
    text(reason),
    why === '' ? `${denied} without explanation` : `${denied}: ${why}`,
    {
      ...(isRecord(details) ? { details: detailsOf(details) } : {}),
    },
  );
}

function detailsOf(details: JsonRecord): StatusDetails {
  const { name, group, kind, uid, causes, retryAfterSeconds } = details;
  return {
    ...(text(name) === '' ? {} : { name: text(name) }),
    ...(text(group) === '' ? {} : { group: text(group) }),
    ...(text(kind) === '' ? {} : { kind: text(kind) }),
    ...(text(uid) === '' ? {} : { uid: text(uid) }),
    ...(Array.isArray(causes) ? { causes: causes.filter(isRecord).map(causeOf) } : {}),
    ...(typeof retryAfterSeconds === 'number' ? { retryAfterSeconds } : {}),
  };
}

function causeOf({ reason, message, field }: JsonRecord): StatusCause {
  return {
    ...(text(reason) === '' ? {} : { reason: text(reason) }),
    ...(text(message) === '' ? {} : { message: text(message) }),
    ...(text(field) === '' ? {} : { field: text(field) }),
  };
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
