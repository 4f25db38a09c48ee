import type { KubeObject } from '../../objects/meta.ts';
import { required } from '../field-errors.ts';
import { genericStrategy } from '../generic.ts';
import { validateImmutableField } from '../metadata.ts';
import { nameIsDNSSubdomain } from '../names.ts';
import { validateNonNegative } from '../workload/rules.ts';

/** Apps/v1 ControllerRevision. */
interface ControllerRevision extends KubeObject {
  data?: unknown;
  revision?: number;
}

/** The rules of ControllerRevisions (`apis/apps/validation` ValidateControllerRevision). */
export const controllerRevisionStrategy = genericStrategy<ControllerRevision>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  repeatsCreate: 'before',
  validateCreate: ({ data, revision }) => [
    ...(data === undefined || data === null ? [required('data', 'data is mandatory')] : []),
    ...validateNonNegative(revision, 'revision'),
  ],
  validateUpdate: ({ data }, old) => validateImmutableField(data, old.data, 'data'),
});
