import { goJson, goQuote } from '../../objects/formats/go-text.ts';
import { StatusError, type StatusCause } from '../../objects/status.ts';

/** The `reason` words of `details.causes` (apimachinery `util/validation/field/errors.go`). */
export type FieldErrorReason =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueDuplicate'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueNotFound'
  | 'FieldValueTypeInvalid'
  | 'InternalError';

/** One error: field, reason, and the text after the field. */
export interface FieldError {
  /** Path such as `spec.ports[0].port`. */
  field: string;
  reason: FieldErrorReason;
  /** The message without the field, e.g. `Invalid value: 0: must be between 1 and 65535, inclusive`. */
  body: string;
  /** See {@link declarative}. */
  readonly declarative?: true;
}

/**
 * An error of a rule that Kubernetes declares at the field of the type (enforced `+k8s:` tags), and which takes the
 * place of one that is written by hand: it stands behind all of those ({@link asReported}).
 */
export function declarative(error: FieldError): FieldError {
  return { ...error, declarative: true };
}

/**
 * The errors of a kind with declarative validation, as answers name them: each once, those of declarations last
 * (`registry/rest/validate.go` ValidateDeclarativelyWithMigrationChecks).
 */
export function asReported(errors: readonly FieldError[]): FieldError[] {
  const texts = new Set<string>();
  const once = errors.filter(({ field, body }) => {
    const text = `${field}: ${body}`;
    return !texts.has(text) && texts.add(text);
  });
  return [
    ...once.filter(({ declarative }) => !declarative),
    ...once.filter(({ declarative }) => declarative),
  ];
}

/**
 * A value as Go's field errors print it: strings quoted, numbers and booleans bare, lists and objects as JSON, an
 * absent list or pointer as `null`.
 */
export function renderValue(value: unknown): string {
  if (value === undefined || value === null) return 'null';
  return typeof value === 'string' ? goQuote(value) : goJson(value);
}

export function required(field: string, detail = ''): FieldError {
  const body = detail === '' ? 'Required value' : `Required value: ${detail}`;
  return { field, reason: 'FieldValueRequired', body };
}

export function invalid(field: string, value: unknown, detail: string): FieldError {
  const shown = `Invalid value: ${renderValue(value)}`;
  return { field, reason: 'FieldValueInvalid', body: detail === '' ? shown : `${shown}: ${detail}` };
}

/** Without the value, which is long or secret (`field.OmitValueType`). */
export function invalidOmitted(field: string, detail: string): FieldError {
  return { field, reason: 'FieldValueInvalid', body: `Invalid value: ${detail}` };
}

/** A cache of texts of {@link notSupported}: a list of 100,000 values may have an error for each. */
const supportedTexts = new WeakMap<readonly string[], string>();

/** `supported` is printed in the given order: callers sort where Kubernetes sorts. */
export function notSupported(field: string, value: unknown, supported: readonly string[]): FieldError {
  let list = supportedTexts.get(supported);
  if (list === undefined) {
    list = supported.map((word) => JSON.stringify(word)).join(', ');
    supportedTexts.set(supported, list);
  }
  const tail = supported.length === 0 ? '' : `: supported values: ${list}`;
  return { field, reason: 'FieldValueNotSupported', body: `Unsupported value: ${renderValue(value)}${tail}` };
}

export function duplicate(field: string, value: unknown): FieldError {
  return { field, reason: 'FieldValueDuplicate', body: `Duplicate value: ${renderValue(value)}` };
}

export function forbiddenField(field: string, detail: string): FieldError {
  return { field, reason: 'FieldValueForbidden', body: detail === '' ? 'Forbidden' : `Forbidden: ${detail}` };
}

/** The field could not be validated (`field.InternalError`). */
export function internalFault(field: string, detail: string): FieldError {
  return { field, reason: 'InternalError', body: `Internal error: ${detail}` };
}

/** A reference to an object that does not exist (`field.NotFound`). */
export function notFoundField(field: string, value: unknown): FieldError {
  return { field, reason: 'FieldValueNotFound', body: `Not found: ${renderValue(value)}` };
}

/** `max` in bytes. */
export function tooLong(field: string, max: number): FieldError {
  return { field, reason: 'FieldValueTooLong', body: `Too long: may not be more than ${max} bytes` };
}

export function tooMany(field: string, actual: number, max: number): FieldError {
  return {
    field,
    reason: 'FieldValueTooMany',
    body: `Too many: ${actual}: must have at most ${max} ${max === 1 ? 'item' : 'items'}`,
  };
}

/** The errors in one line, in brackets if there are several, repeated ones once (`ErrorList.ToAggregate`). */
export function aggregateText(errors: readonly FieldError[]): string {
  const texts = [...new Set(errors.map(({ field, body }) => `${field}: ${body}`))];
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
}

/** The object of a 422: `kind` is the Kind, not the plural. */
export interface InvalidSubject {
  group: string;
  kind: string;
  name: string;
}

/** Limit of the characters of errors in an answer; only long lists of values reach it. */
export const maxErrorText = 512 * 1024;

/** The errors that fit into an answer; at least one. */
function withinRoom(errors: readonly FieldError[]): readonly FieldError[] {
  let length = 0;
  const end = errors.findIndex(({ body }) => (length += body.length) > maxErrorText);
  return end === -1 ? errors : errors.slice(0, Math.max(1, end));
}

/** The errors of each item of a list that may be long, up to those that {@link invalidObject} leaves out. */
export function errorsOfEach<T>(
  items: readonly T[],
  errorsOf: (item: T) => readonly FieldError[],
): FieldError[] {
  const errors: FieldError[] = [];
  let length = 0;
  for (const item of items) {
    for (const error of errorsOf(item)) {
      errors.push(error);
      length += error.body.length;
    }
    if (length > maxErrorText) break;
  }
  return errors;
}

/**
 * The 422 of a list of field errors (apimachinery `errors.NewInvalid`). The bracketed message drops repeated errors,
 * `causes` keeps them. The first 512 KiB of text are kept: each error of a long list may contain all supported values.
 *
 * @param all at least one.
 */
export function invalidObject(subject: InvalidSubject, all: readonly FieldError[]): StatusError {
  const errors = withinRoom(all);
  const causes: StatusCause[] = errors.map(({ reason, body, field }) => ({ reason, message: body, field }));
  const what = subject.group === '' ? subject.kind : `${subject.kind}.${subject.group}`;
  const text = aggregateText(errors);
  return new StatusError(422, 'Invalid', `${what} "${subject.name}" is invalid: ${text}`, {
    details: {
      ...(subject.name === '' ? {} : { name: subject.name }),
      ...(subject.group === '' ? {} : { group: subject.group }),
      ...(subject.kind === '' ? {} : { kind: subject.kind }),
      causes,
    },
  });
}
