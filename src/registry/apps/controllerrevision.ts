import type { ControllerRevision } from '../../objects/types/apps.generated.ts';
import { required } from '../validation/field-errors.ts';
import { genericStrategy } from '../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import { validateNonNegative } from '../core/podtemplate.ts';

/** The rules of ControllerRevisions (`apis/apps/validation` ValidateControllerRevision). */
export const controllerRevisionStrategy = genericStrategy<ControllerRevision>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  repeatsCreate: 'before',
  validateCreate: ({ data, revision }) => [
    ...(data === undefined || data === null ? [required('data', 'data is mandatory')] : []),
    ...validateNonNegative(revision, 'revision'),
  ],
  immutable: ['data'],
});
