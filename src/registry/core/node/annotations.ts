import { listAt, recordAt } from '../../../objects/read.ts';
import { type FieldError, invalid, required } from '../../validation/field-errors.ts';
import { readJsonObject } from '../../generic/json-text.ts';

/** The annotation of Pods that the node avoids, as JSON; it has no effect any more. */
const preferAvoidPods = 'scheduler.alpha.kubernetes.io/preferAvoidPods';

/** Annotations of a Node with a format (`ValidateNodeSpecificAnnotations`). */
export function validateNodeAnnotations(annotations: Record<string, string> = {}): FieldError[] {
  const text = Object.hasOwn(annotations, preferAvoidPods) ? (annotations[preferAvoidPods] ?? '') : '';
  if (text === '') return [];
  const { object, fault } = readJsonObject(text);
  if (fault !== '') return [invalid('metadata.annotations.AvoidPods', preferAvoidPods, fault)];
  return listAt(object, 'preferAvoidPods').flatMap((entry, i) => {
    const path = `metadata.annotations.${preferAvoidPods}[${i}].PodSignature`;
    const owner = recordAt(entry, 'podSignature')['podController'];
    if (owner === undefined || owner === null) return [required(path)];
    if (recordAt(owner)['controller'] === true) return [];
    return [invalid(`${path}.PodController.Controller`, false, 'must point to a controller')];
  });
}
