import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import { StatusError, type StatusCause, type StatusDetails } from '../../../objects/status.ts';
import { textAt } from '../../../objects/read.ts';

/** The error of a write that a webhook denied: the webhook's Status, with a valid code (`webhookerrors.ToStatusErr`). */
export function deniedBy(webhook: string, result: JsonRecord): StatusError {
  const { code, reason, message, details } = result;
  const denied = `admission webhook ${JSON.stringify(webhook)} denied the request`;
  const why = textAt(message) || textAt(reason);
  // A denial is never a success, and clients accept no code above 599.
  const status = typeof code === 'number' && code >= 400 && code <= 599 ? Math.trunc(code) : 400;
  return new StatusError(
    status,
    textAt(reason),
    why === '' ? `${denied} without explanation` : `${denied}: ${why}`,
    isRecord(details) ? { details: detailsOf(details) } : {},
  );
}

function detailsOf(details: JsonRecord): StatusDetails {
  const { name, group, kind, uid, causes, retryAfterSeconds } = details;
  return {
    ...(textAt(name) === '' ? {} : { name: textAt(name) }),
    ...(textAt(group) === '' ? {} : { group: textAt(group) }),
    ...(textAt(kind) === '' ? {} : { kind: textAt(kind) }),
    ...(textAt(uid) === '' ? {} : { uid: textAt(uid) }),
    ...(Array.isArray(causes) ? { causes: causes.filter(isRecord).map(causeOf) } : {}),
    ...(typeof retryAfterSeconds === 'number' ? { retryAfterSeconds } : {}),
  };
}

function causeOf({ reason, message, field }: JsonRecord): StatusCause {
  return {
    ...(textAt(reason) === '' ? {} : { reason: textAt(reason) }),
    ...(textAt(message) === '' ? {} : { message: textAt(message) }),
    ...(textAt(field) === '' ? {} : { field: textAt(field) }),
  };
}
