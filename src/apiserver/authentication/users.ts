import type { UserInfo } from '../../registry/generic/strategy.ts';
const authenticatedGroup = 'system:authenticated';
export const unauthenticatedGroup = 'system:unauthenticated';

/** The extra that names the credential of a user (`user.CredentialIDKey`). */
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

/** Adds the group of all authenticated users, as kube-apiserver's group adder does. */
export function withAuthenticatedGroup(user: UserInfo): UserInfo {
  if (user.groups.includes(authenticatedGroup)) return user;
  return { ...user, groups: [...user.groups, authenticatedGroup] };
}
