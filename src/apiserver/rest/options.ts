import { type StatusError, badRequest, plainError } from '../../objects/status.ts';
import { pushAll } from '../../objects/lists.ts';
import {
  type FieldError,
  forbiddenField,
  invalidObject,
  notSupported,
  required,
  invalid,
} from '../../registry/validation/field-errors.ts';
import type { FieldValidation } from '../schema/schema.ts';
import { validateFieldManager } from '../../registry/generic/metadata.ts';
import type { ApiRequest } from '../http/exchange.ts';
import { isRecord, isStringList, type JsonRecord } from '../../objects/json.ts';
import { bodyMediaType } from '../http/negotiation.ts';
import { decodeDeleteOptions } from '../schema/decode-body.ts';

/**
 * Query parameters as apimachinery's conversion reads them (`runtime/converter`, `meta/v1/conversion.go`): the
 * first value counts; a boolean is false for "false" and "0", true for any other text and for none.
 */

/** The boolean parameter `name`, or undefined when absent. */
export function booleanParameter(query: URLSearchParams, name: string): boolean | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const lower = text.toLowerCase();
  return lower !== 'false' && lower !== '0';
}

/** The integer parameter `name`, or undefined when absent. @throws {StatusError} 400 with Go's words. */
function integerParameter(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const refused = (why: string): Error =>
    badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`);
  if (!/^[+-]?\d+$/.test(text)) throw refused('invalid syntax');
  const value = boundedInteger(text);
  if (value === undefined || BigInt.asIntN(64, value) !== value) throw refused('value out of range');
  return Number(value);
}

/** The text parameter `name`, or "" when absent. */
function textParameter(query: URLSearchParams, name: string): string {
  return query.get(name) ?? '';
}

/** Digits with or without a sign; undefined when they are beyond any 64 bits, however many they are. */
function boundedInteger(text: string): bigint | undefined {
  const digits = text.replace(/^[+-]?0*/, '');
  if (digits.length > 20) return undefined;
  return text.startsWith('-') ? -BigInt(digits) : BigInt(digits);
}

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

/** CreateOptions, UpdateOptions and PatchOptions (meta/v1), checked. */
export interface CheckedWriteOptions {
  readonly dryRun: boolean;
  /** The `fieldManager` parameter, "" when absent. */
  readonly fieldManager: string;
  readonly fieldValidation: FieldValidation;
  /** Only for server-side apply. */
  readonly force: boolean;
}

type OptionsKind = 'CreateOptions' | 'UpdateOptions' | 'PatchOptions';

/**
 * Reads the options of a create, update or patch from the query.
 * @throws {StatusError} 422 about CreateOptions, UpdateOptions or PatchOptions.
 */
export function writeOptions(request: ApiRequest, kind: OptionsKind, isApply = false): CheckedWriteOptions {
  const { query } = request;
  const force = booleanParameter(query, 'force');
  const fieldManager = query.get('fieldManager') ?? '';
  const errors: FieldError[] = [];
  if (kind === 'PatchOptions') {
    if (!isApply && force !== undefined)
      errors.push(forbiddenField('force', 'may not be specified for non-apply patch'));
    if (isApply && fieldManager === '') errors.push(required('fieldManager', 'is required for apply patch'));
  }
  pushAll(errors, validateFieldManager(fieldManager, 'fieldManager'));
  const dryRun = query.getAll('dryRun');
  pushAll(errors, dryRunErrors(dryRun));
  const validation = query.get('fieldValidation') ?? '';
  if (!isFieldValidation(validation) && validation !== '') {
    errors.push(notSupported('fieldValidation', validation, ['', 'Ignore', 'Strict', 'Warn']));
  }
  if (errors.length > 0) throw invalidObject({ group: 'meta.k8s.io', kind, name: '' }, errors);
  return {
    dryRun: dryRun.length > 0,
    fieldManager,
    fieldValidation: isFieldValidation(validation) ? validation : 'Warn',
    force: force === true,
  };
}

/** The options as an object, for webhooks. */
export function writeOptionsObject(kind: OptionsKind, options: CheckedWriteOptions): Record<string, unknown> {
  const { dryRun, force, fieldManager, fieldValidation } = options;
  const object: Record<string, unknown> = { kind, apiVersion: 'meta.k8s.io/v1' };
  if (dryRun) object['dryRun'] = ['All'];
  if (force) object['force'] = force;
  if (fieldManager !== '') object['fieldManager'] = fieldManager;
  object['fieldValidation'] = fieldValidation;
  return object;
}

function isFieldValidation(text: string): text is FieldValidation {
  return text === 'Ignore' || text === 'Warn' || text === 'Strict';
}

/** `dryRun` may be absent or hold "All" only (`validation.ValidateDryRun`). */
function dryRunErrors(values: readonly string[]): FieldError[] {
  return values.some((value) => value !== 'All') ? [notSupported('dryRun', values, ['All'])] : [];
}

/** DeleteOptions (meta/v1), checked. */
export interface CheckedDeleteOptions {
  readonly gracePeriodSeconds: number | undefined;
  readonly preconditions: { readonly uid?: string; readonly resourceVersion?: string };
  readonly orphanDependents: boolean | undefined;
  readonly propagationPolicy: string | undefined;
  readonly dryRun: boolean;
  /** Only an object that cannot be read is to be deleted (`ignoreStoreReadErrorWithClusterBreakingPotential`). */
  readonly ignoresReadErrors?: boolean;
}

interface RawDeleteOptions {
  ignoresReadErrors: boolean;
  gracePeriodSeconds: number | undefined;
  preconditions: { uid?: string; resourceVersion?: string };
  orphanDependents: boolean | undefined;
  propagationPolicy: string | undefined;
  dryRun: string[];
  hasPreconditions: boolean;
}

/**
 * Reads the options of a delete from its body, or from the query when there is none.
 *
 * @throws {StatusError} 400 for a body of another kind or with wrong types, 415 for one of another media type, 422
 * for options that do not hold.
 */
export async function deleteOptions(request: ApiRequest): Promise<CheckedDeleteOptions> {
  const bytes = await request.body();
  const raw =
    bytes.length === 0
      ? optionsOfQuery(request.query)
      : optionsOfBody(decodeDeleteOptions(bytes, bodyMediaType(request.headers['content-type'])));
  const errors: FieldError[] = [];
  const { propagationPolicy, orphanDependents } = raw;
  if (propagationPolicy !== undefined && orphanDependents !== undefined) {
    errors.push(
      invalid(
        'propagationPolicy',
        propagationPolicy,
        'orphanDependents and deletionPropagation cannot be both set',
      ),
    );
  }
  if (
    propagationPolicy !== undefined &&
    !['Foreground', 'Background', 'Orphan'].includes(propagationPolicy)
  ) {
    errors.push(
      notSupported('propagationPolicy', propagationPolicy, ['Foreground', 'Background', 'Orphan', 'nil']),
    );
  }
  pushAll(errors, dryRunErrors(raw.dryRun));
  pushAll(errors, ignoredErrorsErrors(raw));
  if (errors.length > 0) throw invalidDeleteOptions(errors);
  return { ...raw, dryRun: raw.dryRun.length > 0 };
}

const ignoreReadErrors = 'ignoreStoreReadErrorWithClusterBreakingPotential';

/** The option excludes all others but dry run (`ValidateIgnoreStoreReadError`). */
function ignoredErrorsErrors(raw: RawDeleteOptions): FieldError[] {
  if (!raw.ignoresReadErrors) return [];
  const { propagationPolicy, orphanDependents, gracePeriodSeconds, hasPreconditions } = raw;
  const others = {
    propagationPolicy: propagationPolicy !== undefined,
    orphanDependents: orphanDependents !== undefined,
    gracePeriodSeconds: gracePeriodSeconds !== undefined,
    preconditions: hasPreconditions,
  };
  return Object.entries(others).flatMap(([member, isSet]) =>
    isSet ? [invalid(ignoreReadErrors, true, `cannot be set together with .${member}`)] : [],
  );
}

/** @throws {StatusError} 422 for options that a delete of a collection cannot have. */
export function checkCollectionDelete({ ignoresReadErrors }: CheckedDeleteOptions): void {
  if (ignoresReadErrors !== true) return;
  const detail = 'is not allowed with DELETECOLLECTION, try again after removing the option';
  throw invalidDeleteOptions([invalid(ignoreReadErrors, true, detail)]);
}

function invalidDeleteOptions(errors: readonly FieldError[]): StatusError {
  return invalidObject({ group: 'meta.k8s.io', kind: 'DeleteOptions', name: '' }, errors);
}

/** The options as a DeleteOptions object, for webhooks. */
export function deleteOptionsObject(options: CheckedDeleteOptions): Record<string, unknown> {
  const { gracePeriodSeconds, preconditions, orphanDependents, propagationPolicy, dryRun } = options;
  return {
    kind: 'DeleteOptions',
    apiVersion: 'meta.k8s.io/v1',
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }),
    ...(orphanDependents === undefined ? {} : { orphanDependents }),
    ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
    ...(dryRun ? { dryRun: ['All'] } : {}),
  };
}

function optionsOfQuery(query: URLSearchParams): RawDeleteOptions {
  return {
    gracePeriodSeconds: integerParameter(query, 'gracePeriodSeconds'),
    preconditions: {},
    orphanDependents: booleanParameter(query, 'orphanDependents'),
    propagationPolicy: query.get('propagationPolicy') ?? undefined,
    dryRun: query.getAll('dryRun'),
    hasPreconditions: false,
    ignoresReadErrors: booleanParameter(query, ignoreReadErrors) === true,
  };
}

/** The fields arrive typed: the decoder has refused everything else. */
function optionsOfBody(body: JsonRecord): RawDeleteOptions {
  const { gracePeriodSeconds, orphanDependents, propagationPolicy, dryRun } = body;
  const preconditions = isRecord(body['preconditions']) ? body['preconditions'] : {};
  const { uid, resourceVersion } = preconditions;
  return {
    gracePeriodSeconds: typeof gracePeriodSeconds === 'number' ? gracePeriodSeconds : undefined,
    preconditions: {
      ...(typeof uid === 'string' ? { uid } : {}),
      ...(typeof resourceVersion === 'string' ? { resourceVersion } : {}),
    },
    orphanDependents: typeof orphanDependents === 'boolean' ? orphanDependents : undefined,
    propagationPolicy: typeof propagationPolicy === 'string' ? propagationPolicy : undefined,
    dryRun: isStringList(dryRun) ? dryRun : [],
    hasPreconditions: isRecord(body['preconditions']),
    ignoresReadErrors: body[ignoreReadErrors] === true,
  };
}
