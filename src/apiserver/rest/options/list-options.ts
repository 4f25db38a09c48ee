import { pushAll } from '../../../objects/lists.ts';
import { plainError } from '../../../objects/status-errors.ts';
import type { FieldError } from '../../../registry/validation/field-errors.ts';
import { forbiddenField, invalidObject, notSupported } from '../../../registry/validation/field-errors.ts';
import { booleanParameter, boundedInteger, integerParameter, textParameter } from './query.ts';

/** ListOptions (meta/v1) of a list or watch, checked except for the selectors, which the caller parses. */
export interface ListOptions {
  readonly labelSelector: string;
  readonly fieldSelector: string;
  readonly allowWatchBookmarks: boolean;
  readonly resourceVersion: string;
  readonly resourceVersionMatch: string;
  readonly timeoutSeconds: number | undefined;
  /** 0 or less means no limit. */
  readonly limit: number;
  readonly continueToken: string;
  readonly sendInitialEvents: boolean | undefined;
}

/**
 * Reads the options of a list (`watch` false) or a watch.
 * @throws {StatusError} 400 for numbers that are none, 422 for combinations that are refused.
 */
export function listOptions(query: URLSearchParams, watch: boolean): ListOptions {
  const plain: ListOptions = {
    labelSelector: textParameter(query, 'labelSelector'),
    fieldSelector: textParameter(query, 'fieldSelector'),
    allowWatchBookmarks: booleanParameter(query, 'allowWatchBookmarks') ?? false,
    resourceVersion: textParameter(query, 'resourceVersion'),
    resourceVersionMatch: textParameter(query, 'resourceVersionMatch'),
    timeoutSeconds: integerParameter(query, 'timeoutSeconds'),
    limit: integerParameter(query, 'limit') ?? 0,
    continueToken: textParameter(query, 'continue'),
    sendInitialEvents: booleanParameter(query, 'sendInitialEvents'),
  };
  const options = watch ? watchDefaults(plain) : plain;
  const errors = watch ? watchErrors(options) : listErrors(options);
  if (errors.length > 0) throw invalidObject({ group: 'meta.k8s.io', kind: 'ListOptions', name: '' }, errors);
  return options;
}

/** A watch from any state sends that state first (`SetListOptionsDefaults`, WatchList on). */
function watchDefaults(options: ListOptions): ListOptions {
  const { resourceVersion, resourceVersionMatch, sendInitialEvents } = options;
  if (sendInitialEvents !== undefined || resourceVersionMatch !== '') return options;
  if (resourceVersion !== '' && resourceVersion !== '0') return options;
  return { ...options, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' };
}

const listMatches = ['Exact', 'NotOlderThan', ''];
const watchMatches = ['NotOlderThan'];

/** `validateListOptions` of apimachinery `internalversion/validation`. */
function listErrors(options: ListOptions): FieldError[] {
  const errors: FieldError[] = [];
  const match = options.resourceVersionMatch;
  if (match !== '') {
    if (options.resourceVersion === '') {
      errors.push(
        forbiddenField(
          'resourceVersionMatch',
          'resourceVersionMatch is forbidden unless resourceVersion is provided',
        ),
      );
    }
    pushAll(errors, matchErrors(options));
    if (match === 'Exact' && options.resourceVersion === '0') {
      errors.push(
        forbiddenField(
          'resourceVersionMatch',
          'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
      );
    }
  }
  if (options.sendInitialEvents !== undefined) {
    errors.push(forbiddenField('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  return errors;
}

function matchErrors(options: ListOptions): FieldError[] {
  const errors: FieldError[] = [];
  if (options.continueToken !== '') {
    errors.push(
      forbiddenField('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided'),
    );
  }
  if (!listMatches.includes(options.resourceVersionMatch)) {
    errors.push(notSupported('resourceVersionMatch', options.resourceVersionMatch, listMatches));
  }
  return errors;
}

/** `validateWatchOptions`. */
function watchErrors(options: ListOptions): FieldError[] {
  const errors: FieldError[] = [];
  const match = options.resourceVersionMatch;
  if (options.sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    errors.push(
      forbiddenField(
        'resourceVersionMatch',
        'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
      ),
    );
  }
  if (match !== '') {
    if (options.sendInitialEvents === undefined) {
      errors.push(
        forbiddenField(
          'resourceVersionMatch',
          'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
        ),
      );
    }
    if (!watchMatches.includes(match)) {
      errors.push(notSupported('resourceVersionMatch', match, watchMatches));
    }
    if (options.continueToken !== '') {
      errors.push(
        forbiddenField('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided'),
      );
    }
  }
  return errors;
}

/**
 * A resourceVersion as a number of 64 bits without a sign (storage `APIObjectVersioner.ParseResourceVersion`); "" is 0.
 *
 * @param refuse the error for what is no number: of gets and watches the 500 that kube-apiserver answers.
 * @throws what `refuse` makes.
 */
export function parseResourceVersion(text: string, refuse: (message: string) => Error = plainError): bigint {
  if (text === '') return 0n;
  const isNumber = /^\d+$/.test(text);
  const revision = isNumber ? boundedInteger(text) : undefined;
  if (revision !== undefined && BigInt.asUintN(64, revision) === revision) return revision;
  const quoted = JSON.stringify(text);
  const why = isNumber ? 'value out of range' : 'invalid syntax';
  throw refuse(`resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: ${why}`);
}
