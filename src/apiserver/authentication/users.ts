import type { UserInfo } from '../../registry/generic/strategy.ts';

const authenticatedGroup = 'system:authenticated';
export const unauthenticatedGroup = 'system:unauthenticated';

/** The key of the extra that identifies the credential of a user (`user.CredentialIDKey`). */
export const credentialId = 'authentication.kubernetes.io/credential-id';

/** The user of requests without a credential (apiserver `authentication/user`). */
export const anonymousUser: UserInfo = {
  name: 'system:anonymous',
  uid: '',
  groups: [unauthenticatedGroup],
  extra: {},
};

/** The user of the server's own requests (`user.APIServerUser`). */
export const systemUser: UserInfo = {
  name: 'system:apiserver',
  uid: '',
  groups: ['system:masters'],
  extra: {},
};

/** The user name of a ServiceAccount (apiserver `serviceaccount.MakeUsername`). */
export function serviceAccountUserName(namespace: string, name: string): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

/** The groups of a ServiceAccount's user (apiserver `serviceaccount.MakeGroupNames`). */
export function serviceAccountGroups(namespace: string): string[] {
  return ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
}

/** The user with the group of all authenticated users (apiserver `authentication/group`). */
export function withAuthenticatedGroup(user: UserInfo): UserInfo {
  if (user.groups.includes(authenticatedGroup)) return user;
  return { ...user, groups: [...user.groups, authenticatedGroup] };
}
