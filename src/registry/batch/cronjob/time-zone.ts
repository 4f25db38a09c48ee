import { type FieldError, invalid } from '../../validation/field-errors.ts';

/** What a part of a name may look like (`validTimeZoneCharacters`). */
const part = /^[A-Za-z.\-_0-9+]{1,14}$/;

/** A time zone of IANA's by its name, or none (`validateTimeZone`). */
export function validateTimeZone(timeZone: string | undefined, path: string): FieldError[] {
  if (timeZone === undefined) return [];
  if (timeZone === '') return [invalid(path, timeZone, 'timeZone must be nil or non-empty string')];
  const unknown = invalid(path, timeZone, `unknown time zone ${timeZone}`);
  const isName = timeZone
    .split('/')
    .every((text) => text !== '.' && text !== '..' && !text.startsWith('-') && part.test(text));
  if (!isName) return [unknown];
  if (timeZone.toLowerCase() === 'local') {
    const explicit = 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones';
    // Go knows `Local` by this spelling only
    return [invalid(path, timeZone, explicit), ...(timeZone === 'Local' ? [] : [unknown])];
  }
  return isKnown(timeZone) ? [] : [unknown];
}

function isKnown(timeZone: string): boolean {
  // offsets are names to JavaScript only
  if (/^[+-]/.test(timeZone)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions();
    return true;
  } catch {
    return false;
  }
}
