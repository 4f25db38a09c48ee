import type { CustomResourceDefinitionVersion } from '../../../objects/types/apiextensions.generated.ts';
import { compileSteps, maxCompileSteps } from '../../../cel/patterns/size.ts';
import { type FieldError, forbiddenField } from '../../validation/field-errors.ts';

/**
 * The patterns of a definition compile to as much as one of CEL may. kube-apiserver has no such rule: a pattern of 15
 * characters can have a million instructions, and each is matched at every write.
 */
export function validatePatternSizes(versions: readonly CustomResourceDefinitionVersion[]): FieldError[] {
  const patterns = new Set<string>();
  for (const { schema } of versions) collect(schema, patterns);
  let steps = 0;
  for (const pattern of patterns) {
    steps += compileSteps(pattern);
    if (steps > maxCompileSteps) {
      return [forbiddenField('spec.versions', 'the patterns of the schemas are too large together')];
    }
  }
  return [];
}

/** The value of a member `pattern` is one, except in a few defaults and allowed values. */
function collect(value: unknown, patterns: Set<string>): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (typeof member !== 'string') collect(member, patterns);
    else if (name === 'pattern') patterns.add(member);
  }
}
