import { isRecord } from '../../objects/json.ts';
import { badRequest } from '../../objects/status-errors.ts';
import type { FieldError } from '../../registry/field-errors.ts';
import { invalid, invalidObject, notSupported } from '../../registry/field-errors.ts';
import { isStringList } from '../../objects/json.ts';
import { booleanParameter, integerParameter } from './query.ts';
import { dryRunErrors } from './write-options.ts';

/** DeleteOptions (meta/v1), checked. */
export interface DeleteOptions {
  readonly gracePeriodSeconds: number | undefined;
  readonly preconditions: { readonly uid?: string; readonly resourceVersion?: string };
  readonly orphanDependents: boolean | undefined;
  readonly propagationPolicy: string | undefined;
  readonly dryRun: boolean;
}

interface RawDeleteOptions {
  gracePeriodSeconds: number | undefined;
  preconditions: { uid?: string; resourceVersion?: string };
  orphanDependents: boolean | undefined;
  propagationPolicy: string | undefined;
  dryRun: string[];
}

/**
 * Reads the options of a delete from its body (already parsed as JSON or YAML), or from the query when there is no
 * body.
 *
 * @throws {StatusError} 400 for a body of another kind or with wrong types, 422 for options that do not hold.
 */
export function deleteOptions(body: unknown, query: URLSearchParams): DeleteOptions {
  const raw = body === undefined ? optionsOfQuery(query) : optionsOfBody(body);
  const errors: FieldError[] = [];
  const { propagationPolicy, orphanDependents } = raw;
  if (propagationPolicy !== undefined && orphanDependents !== undefined) {
    errors.push(
      invalid('propagationPolicy', propagationPolicy, 'orphanDependents and deletionPropagation cannot be both set'),
    );
  }
  if (propagationPolicy !== undefined && !['Foreground', 'Background', 'Orphan'].includes(propagationPolicy)) {
    errors.push(notSupported('propagationPolicy', propagationPolicy, ['Foreground', 'Background', 'Orphan', 'nil']));
  }
  errors.push(...dryRunErrors(raw.dryRun));
  if (errors.length > 0) throw invalidObject({ group: 'meta.k8s.io', kind: 'DeleteOptions', name: '' }, errors);
  return { ...raw, dryRun: raw.dryRun.length > 0 };
}

function optionsOfQuery(query: URLSearchParams): RawDeleteOptions {
  return {
    gracePeriodSeconds: integerParameter(query, 'gracePeriodSeconds'),
    preconditions: {},
    orphanDependents: booleanParameter(query, 'orphanDependents'),
    propagationPolicy: query.get('propagationPolicy') ?? undefined,
    dryRun: query.getAll('dryRun'),
  };
}

const scheme = 'k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27';

function optionsOfBody(body: unknown): RawDeleteOptions {
  if (!isRecord(body)) throw badRequest(`json: cannot unmarshal ${goKind(body)} into Go value of type v1.DeleteOptions`);
  const kind = body['kind'] ?? 'DeleteOptions';
  const version = body['apiVersion'] ?? 'v1';
  if (typeof kind !== 'string' || typeof version !== 'string' || kind !== 'DeleteOptions') {
    throw badRequest(
      `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(version)} in scheme ${JSON.stringify(scheme)}`,
    );
  }
  const preconditions = typed(body, 'preconditions', isRecord, 'v1.Preconditions') ?? {};
  const uid = typed(preconditions, 'uid', isText, 'types.UID', 'Preconditions.preconditions.uid');
  const resourceVersion = typed(
    preconditions,
    'resourceVersion',
    isText,
    'string',
    'Preconditions.preconditions.resourceVersion',
  );
  return {
    gracePeriodSeconds: typed(body, 'gracePeriodSeconds', isInteger, 'int64'),
    preconditions: {
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    },
    orphanDependents: typed(body, 'orphanDependents', isBoolean, 'bool'),
    propagationPolicy: typed(body, 'propagationPolicy', isText, 'v1.DeletionPropagation'),
    dryRun: typed(body, 'dryRun', isStringList, '[]string') ?? [],
  };
}

function typed<T>(
  object: Record<string, unknown>,
  name: string,
  is: (value: unknown) => value is T,
  goType: string,
  field = `DeleteOptions.${name}`,
): T | undefined {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  if (value === undefined || value === null) return undefined;
  if (is(value)) return value;
  throw badRequest(`json: cannot unmarshal ${goKind(value)} into Go struct field ${field} of type ${goType}`);
}

function goKind(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number') return Number.isInteger(value) ? 'number' : `number ${value}`;
  return typeof value;
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isBoolean(value: unknown): value is boolean {
  return typeof value === 'boolean';
}

function isInteger(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value);
}
