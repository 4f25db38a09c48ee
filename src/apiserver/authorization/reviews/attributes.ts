import { isRecord, isStringList, type JsonRecord } from '../../../objects/json.ts';
import type { AccessAttributes } from '../authorizer.ts';
import { textAt } from '../../../objects/json.ts';
import type { UserInfo } from '../../../registry/generic/strategy.ts';

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
