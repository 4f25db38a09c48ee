import { type FieldError, invalid } from '../../validation/field-errors.ts';

/** A path below a directory, without "..", (`validateLocalDescendingPath`). */
export function validateDescendingPath(place: string, path: string): FieldError[] {
  const errors = place.startsWith('/') ? [invalid(path, place, 'must be a relative path')] : [];
  return [...errors, ...validateNoBacksteps(place, path)];
}

/** A path that does not start with ".." either (`ValidateLocalNonReservedPath`). */
export function validateFilePath(place: string, path: string): FieldError[] {
  const errors = validateDescendingPath(place, path);
  if (place.startsWith('..') && !place.startsWith('../')) {
    errors.push(invalid(path, place, "must not start with '..'"));
  }
  return errors;
}

/** No part of a path is "..". */
export function validateNoBacksteps(place: string, path: string): FieldError[] {
  return place.split('/').includes('..') ? [invalid(path, place, "must not contain '..'")] : [];
}
