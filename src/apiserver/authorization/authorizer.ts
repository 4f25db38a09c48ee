import type { RequestInfo } from '../http/exchange.ts';
import { StatusError, forbidden } from '../../objects/status.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';
import { isRecord, isStringList, type JsonRecord, textAt } from '../../objects/json.ts';

/** What a request accesses: a resource, or a path outside of the API groups (apiserver `authorizer.Attributes`). */
export interface AccessAttributes {
  readonly verb: string;
  /** Undefined for paths such as /version. */
  readonly resource:
    | {
        readonly group: string;
        readonly resource: string;
        readonly subresource: string;
        readonly namespace: string;
        readonly name: string;
      }
    | undefined;
  readonly path: string;
}

/** Decides whether a user may do something (`--authorization-mode`). */
export interface Authorizer {
  /** The decision and its reason, which may be "". */
  authorize(
    user: UserInfo,
    attributes: AccessAttributes,
  ): { readonly allowed: boolean; readonly reason: string };
}

/** `--authorization-mode=AlwaysAllow`: all authenticated users may do everything. */
export const alwaysAllow: Authorizer = { authorize: () => ({ allowed: true, reason: '' }) };

/** The attributes of a request (`GetAuthorizerAttributes`). */
export function accessOf(info: RequestInfo): AccessAttributes {
  const { verb, path, isResource, group, resource, subresource, namespace, name } = info;
  if (!isResource) return { verb, path, resource: undefined };
  return { verb, path, resource: { group, resource, subresource, namespace, name } };
}

/** `<resource>/<subresource>`, as rules name it; the resource where there is no subresource. */
export function withSubresource({
  resource,
  subresource,
}: NonNullable<AccessAttributes['resource']>): string {
  return subresource === '' ? resource : `${resource}/${subresource}`;
}

/** @throws {StatusError} 403 unless the user is allowed the access. */
export function requireAccess(authorizer: Authorizer, user: UserInfo, attributes: AccessAttributes): void {
  const { allowed, reason } = authorizer.authorize(user, attributes);
  if (!allowed) throw accessForbidden(user, attributes, reason);
}

/** The 403 of a refused request (apiserver `handlers/responsewriters` Forbidden). */
export function accessForbidden(user: UserInfo, attributes: AccessAttributes, reason: string): StatusError {
  const { verb, resource, path } = attributes;
  const tail = reason === '' ? '' : `: ${reason}`;
  const subject = `User ${JSON.stringify(user.name)} cannot ${verb}`;
  if (resource === undefined) {
    return new StatusError(403, 'Forbidden', `forbidden: ${subject} path ${JSON.stringify(path)}${tail}`, {
      details: {},
    });
  }
  const { group, namespace, name } = resource;
  const full = withSubresource(resource);
  const where = namespace === '' ? ' at the cluster scope' : ` in the namespace ${JSON.stringify(namespace)}`;
  return forbidden(
    { group, resource: resource.resource },
    name,
    `${subject} resource ${JSON.stringify(full)} in API group ${JSON.stringify(group)}${where}${tail}`,
  );
}

/** The attributes in the `spec` of an access review; undefined when it names neither a resource nor a path. */
export function attributesOf(spec: JsonRecord): AccessAttributes | undefined {
  const resource = spec['resourceAttributes'];
  if (isRecord(resource)) {
    return {
      verb: textAt(resource['verb']),
      path: '',
      resource: {
        group: textAt(resource['group']),
        resource: textAt(resource['resource']),
        subresource: textAt(resource['subresource']),
        namespace: textAt(resource['namespace']),
        name: textAt(resource['name']),
      },
    };
  }
  const path = spec['nonResourceAttributes'];
  if (!isRecord(path)) return undefined;
  return { verb: textAt(path['verb']), path: textAt(path['path']), resource: undefined };
}

/** The user of a SubjectAccessReview. */
export function reviewedUserOf(spec: JsonRecord): UserInfo {
  const extra = isRecord(spec['extra']) ? spec['extra'] : {};
  return {
    name: textAt(spec['user']),
    uid: textAt(spec['uid']),
    groups: isStringList(spec['groups']) ? spec['groups'] : [],
    extra: Object.fromEntries(
      Object.entries(extra).filter((entry): entry is [string, string[]] => isStringList(entry[1])),
    ),
  };
}

/** A user as an authentication.k8s.io UserInfo. */
export function userInfo(user: UserInfo): JsonRecord {
  return {
    username: user.name,
    ...(user.uid === '' ? {} : { uid: user.uid }),
    ...(user.groups.length === 0 ? {} : { groups: [...user.groups] }),
    ...(Object.keys(user.extra).length === 0 ? {} : { extra: user.extra }),
  };
}

export const certificatesGroup = 'certificates.k8s.io';

/** Whether a user may do something for a signer, or for all of its domain (`pkg/certauthorization`). */
export function isAllowedForSigner(
  authorizer: Authorizer,
  user: UserInfo,
  verb: 'approve' | 'attest' | 'sign',
  signerName: string,
): boolean {
  const [domain = ''] = signerName.split('/');
  return [signerName, `${domain}/*`].some((name) => {
    const resource = { group: certificatesGroup, resource: 'signers', subresource: '', namespace: '', name };
    return authorizer.authorize(user, { verb, path: '', resource }).allowed;
  });
}
