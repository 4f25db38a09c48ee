/** What storage classes and classes of volume attributes share (`apis/storage/validation`). */
import { type FieldError, invalid, required, tooLong } from '../../validation/field-errors.ts';
import { isQualifiedName } from '../../../objects/names.ts';

const maxBytes = 256 * 1024;
const maxParameters = 512;

/** The driver or provisioner of a class: a qualified name in any case (`validateProvisioner`). */
export function validateProvisioner(provisioner: string, path: string): FieldError[] {
  if (provisioner === '') return [required(path)];
  const lower = provisioner.toLowerCase();
  return isQualifiedName(lower).map((message) => invalid(path, lower, message));
}

/** At most 512 parameters of together at most 256 KiB (`validateParameters`). */
export function validateParameters(
  parameters: Readonly<Record<string, string>>,
  allowEmpty: boolean,
): FieldError[] {
  const path = 'parameters';
  const entries = Object.entries(parameters);
  if (entries.length > maxParameters) return [tooLong(path, maxParameters)];
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const [key, value] of entries) {
    if (key === '') errors.push(invalid(path, key, 'field can not be empty.'));
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > maxBytes) errors.push(tooLong(path, maxBytes));
  if (!allowEmpty && entries.length === 0) {
    errors.push(required(path, 'must contain at least one key/value pair'));
  }
  return errors;
}
