import { type FieldError, invalid, notSupported, required } from '../../validation/field-errors.ts';
import { isDNS1123Label, isDNS1123Subdomain } from '../../../objects/names.ts';

/** `ValidateDNS1123Label` at a path. */
export function pushLabelErrors(errors: FieldError[], path: string, value: string): void {
  for (const message of isDNS1123Label(value)) errors.push(invalid(path, value, message));
}

/** `ValidateDNS1123Subdomain` at a path. */
export function pushSubdomainErrors(errors: FieldError[], path: string, value: string): void {
  for (const message of isDNS1123Subdomain(value)) errors.push(invalid(path, value, message));
}

/** One of a list of values: empty is Required, unknown is NotSupported. */
export function pushChoiceErrors(
  errors: FieldError[],
  path: string,
  value: string | undefined,
  choices: readonly string[],
): void {
  if (value === undefined || value === '') errors.push(required(path));
  else if (!choices.includes(value)) errors.push(notSupported(path, value, choices));
}
