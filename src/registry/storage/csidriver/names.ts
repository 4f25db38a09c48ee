import { type FieldError, invalid, required, tooLong } from '../../validation/field-errors.ts';
import { isDNS1123Subdomain } from '../../../objects/names.ts';

const maxDriverName = 63;

/** The name of a CSI driver in references: a subdomain in any case, at most as long as a label. */
export function validateCsiDriverName(name: string, path: string): FieldError[] {
  const errors = name === '' ? [required(path)] : [];
  if (Buffer.byteLength(name) > maxDriverName) errors.push(tooLong(path, maxDriverName));
  for (const message of isDNS1123Subdomain(name.toLowerCase())) errors.push(invalid(path, name, message));
  return errors;
}
