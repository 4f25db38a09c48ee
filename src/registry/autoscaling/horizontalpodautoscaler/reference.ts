import { type FieldError, invalid, required } from '../../validation/field-errors.ts';
import { nameIsPathSegment } from '../../../objects/names.ts';
import type { CrossVersionObjectReference } from './types.ts';

/** `ValidateCrossVersionObjectReference`. */
export function validateReference(
  { kind = '', name = '' }: CrossVersionObjectReference,
  path: string,
): FieldError[] {
  const segment = (member: string, value: string): FieldError[] =>
    value === ''
      ? [required(`${path}.${member}`)]
      : nameIsPathSegment(value, false).map((message) => invalid(`${path}.${member}`, value, message));
  return [...segment('kind', kind), ...segment('name', name)];
}
