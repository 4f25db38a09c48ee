import type { FieldValidation } from '../../schema/schema.ts';
import { pushAll } from '../../../objects/lists.ts';
import {
  type FieldError,
  forbiddenField,
  invalidObject,
  notSupported,
  required,
} from '../../../registry/validation/field-errors.ts';
import { validateFieldManager } from '../../../registry/generic/metadata.ts';
import type { ApiRequest } from '../../http/exchange.ts';
import { booleanParameter } from './query.ts';

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
export function dryRunErrors(values: readonly string[]): FieldError[] {
  return values.some((value) => value !== 'All') ? [notSupported('dryRun', values, ['All'])] : [];
}
