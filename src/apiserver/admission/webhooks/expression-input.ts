import type { AdmissionInput } from '../../../registry/admissionregistration/expressions/input.ts';
import type { UserInfo } from '../../../registry/generic/strategy.ts';
import {
  serviceAccountGroups,
  serviceAccountUserName,
  withAuthenticatedGroup,
} from '../../authentication/users.ts';
import type { Authorizer } from '../../authorization/authorizer.ts';
import type { AdmissionAttributes } from '../../rest/admission.ts';
import type { ServedResource } from '../../rest/served-resource.ts';
import { requestBeforeObjects, requestAfterObjects, servedObject } from './review.ts';

/** The variables of expressions that match conditions and policies share. */
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
    request: { ...requestBeforeObjects(resource, attributes), ...requestAfterObjects(attributes) },
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

function accountUser({ namespace, name }: { readonly namespace: string; readonly name: string }): UserInfo {
  return withAuthenticatedGroup({
    name: serviceAccountUserName(namespace, name),
    uid: '',
    groups: serviceAccountGroups(namespace),
    extra: {},
  });
}
