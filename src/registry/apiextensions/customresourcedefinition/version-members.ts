import type {
  CustomResourceDefinitionVersion,
  JSONSchemaProps,
} from '../../../objects/types/apiextensions.generated.ts';
import { readFieldPath } from '../rules/field-path.ts';
import { duplicate, type FieldError, invalid, required, tooMany } from '../../validation/field-errors.ts';

const columnTypes = ['boolean', 'date', 'integer', 'number', 'string'];
const columnFormats = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];
const maxSelectableFields = 8;
const maxWarning = 256;

/** Columns have a name, a type and a path (`ValidateCustomResourceColumnDefinition`). */
export function validateColumns(
  { additionalPrinterColumns = [] }: CustomResourceDefinitionVersion,
  path: string,
): FieldError[] {
  return additionalPrinterColumns.flatMap(({ name, type, format = '', jsonPath }, i) => {
    const at = `${path}[${i}]`;
    const errors: FieldError[] = [];
    const oneOf = (words: readonly string[]) => `must be one of ${words.join(',')}`;
    if (name === '') errors.push(required(`${at}.name`));
    if (type === '') errors.push(required(`${at}.type`, oneOf(columnTypes)));
    else if (!columnTypes.includes(type)) errors.push(invalid(`${at}.type`, type, oneOf(columnTypes)));
    if (format !== '' && !columnFormats.includes(format)) {
      errors.push(invalid(`${at}.format`, format, oneOf(columnFormats)));
    }
    if (jsonPath === '') errors.push(required(`${at}.JSONPath`));
    else if (!jsonPath.startsWith('.')) {
      errors.push(invalid(`${at}.JSONPath`, jsonPath, 'must be a simple json path starting with .'));
    }
    return errors;
  });
}

/** Selectable fields are declared scalars (`ValidateCustomResourceSelectableFields`). */
export function validateSelectableFields(
  { selectableFields = [] }: CustomResourceDefinitionVersion,
  schema: JSONSchemaProps,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  selectableFields.forEach(({ jsonPath }, i) => {
    const at = `${path}[${i}].jsonPath`;
    if (jsonPath === '') {
      errors.push(required(at));
      return;
    }
    const fail = (detail: string) => errors.push(invalid(at, jsonPath, detail));
    const { field, schema: found, fault } = readFieldPath(jsonPath, schema, false);
    if (fault !== undefined) {
      fail(`is an invalid path: ${fault}`);
      return;
    }
    if (/^metadata(?:[.[]|$)/.test(field)) fail('must not point to fields in metadata');
    if (!['string', 'boolean', 'integer'].includes(found?.type ?? '')) {
      fail(
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.',
      );
    }
    if (seen.has(field)) errors.push(duplicate(at, jsonPath));
    seen.add(field);
  });
  if (seen.size > maxSelectableFields) errors.push(tooMany(path, seen.size, maxSelectableFields));
  return errors;
}

/** Only deprecated versions have a warning, of limited printable characters (`validateDeprecationWarning`). */
export function validateWarning(
  { deprecated = false, deprecationWarning: text }: CustomResourceDefinitionVersion,
  path: string,
): FieldError[] {
  if (text === undefined) return [];
  if (!deprecated) return [invalid(path, text, 'can only be set for deprecated versions')];
  const errors: FieldError[] = [];
  if (Buffer.byteLength(text) > maxWarning) {
    errors.push(invalid(path, text, `must be <= ${maxWarning} characters long`));
  }
  if (text === '') errors.push(invalid(path, text, 'must not be an empty string'));
  const odd = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.exec(text);
  if (odd !== null) {
    const index = Buffer.byteLength(text.slice(0, odd.index));
    const detail = `must only contain printable UTF-8 characters; non-printable character found at index ${index}`;
    errors.push(invalid(path, text, detail));
  }
  return errors;
}
