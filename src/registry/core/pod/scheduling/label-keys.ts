import type { LabelSelector } from '../../../../objects/meta.ts';
import { type FieldError, forbiddenField, invalid } from '../../../validation/field-errors.ts';
import { isQualifiedName } from '../../../../objects/names.ts';

/** A selector of Pods with values from the labels of the Pod itself. */
export interface KeyedSelector {
  labelSelector?: LabelSelector;
  matchLabelKeys?: string[];
  mismatchLabelKeys?: string[];
}

/** The rules of such keys (`ValidateMatchLabelKeysAndMismatchLabelKeys`). */
export function validateMatchKeys(
  { labelSelector, matchLabelKeys: keys = [], mismatchLabelKeys: others = [] }: KeyedSelector,
  path: string,
): FieldError[] {
  const errors = [
    ...validateKeys(keys, labelSelector, `${path}.matchLabelKeys`),
    ...validateKeys(others, labelSelector, `${path}.mismatchLabelKeys`),
  ];
  const seen = new Set(Object.keys(labelSelector?.matchLabels ?? {}));
  for (const { key } of labelSelector?.matchExpressions ?? []) {
    if (keys.includes(key) && seen.has(key)) {
      const detail = 'exists in both matchLabelKeys and labelSelector';
      errors.push(invalid(`${path}[${keys.lastIndexOf(key)}]`, key, detail));
    }
    seen.add(key);
  }
  keys.forEach((key, i) => {
    if (!others.includes(key)) return;
    const detail = 'exists in both matchLabelKeys and mismatchLabelKeys';
    errors.push(invalid(`${path}.matchLabelKeys[${i}]`, key, detail));
  });
  return errors;
}

function validateKeys(
  keys: readonly string[],
  selector: LabelSelector | undefined,
  path: string,
): FieldError[] {
  if (keys.length === 0) return [];
  if (selector === undefined) {
    return [forbiddenField(path, 'must not be specified when labelSelector is not set')];
  }
  return keys.flatMap((key, i) =>
    isQualifiedName(key).map((message) => invalid(`${path}[${i}]`, key, message)),
  );
}

/**
 * Adds the requirements for the keys to the selector of a new Pod (`pkg/registry/core/pod/strategy.go`
 * applyLabelKeysToLabelSelector). Keys without a label of the Pod are left out.
 */
export function applyMatchKeys(
  { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] }: KeyedSelector,
  labels: Readonly<Record<string, string>> = {},
): void {
  if (labelSelector === undefined) return;
  for (const [operator, keys] of [
    ['In', matchLabelKeys],
    ['NotIn', mismatchLabelKeys],
  ] as const) {
    for (const key of keys) {
      const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
      if (value === undefined) continue;
      (labelSelector.matchExpressions ??= []).push({ key, operator, values: [value] });
    }
  }
}
