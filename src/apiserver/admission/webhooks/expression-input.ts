import type { AdmissionInput } from '../../../registry/admissionregistration/expressions/input.ts';
import type { Authorizer } from '../../authorization/authorizer.ts';
import type { AdmissionAttributes } from '../../rest/admission.ts';
import type { ServedResource } from '../../rest/served-resource.ts';
import { requestOf, restOf, servedObject } from './review.ts';

/** What expressions see of a write, but for what only policies see. */
export function admissionInput(
  resource: ServedResource,
  attributes: AdmissionAttributes,
  authorizer: Authorizer,
): AdmissionInput {
  const { object, oldObject, body, user, namespace, name, subresource } = attributes;
  const { group, plural } = attributes.resource.definition;
  return {
    object: object === undefined ? null : servedObject(resource, object, body),
    oldObject: oldObject === undefined ? null : servedObject(resource, oldObject, body),
    request: { ...requestOf(resource, attributes), ...restOf(attributes) },
    access: ({ verb, serviceAccount, path, ...asked }) =>
      authorizer.authorize(serviceAccount === undefined ? user : accountUser(serviceAccount), {
        verb,
        path: path ?? '',
        resource: path === undefined ? asked : undefined,
      }),
    requested: {
      verb: '',
      serviceAccount: undefined,
      path: undefined,
      group,
      resource: plural,
      subresource,
      namespace,
      name,
    },
  };
}

function accountUser({ namespace, name }: { readonly namespace: string; readonly name: string }) {
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
  return { name: `system:serviceaccount:${namespace}:${name}`, uid: '', groups, extra: {} };
}
