import type { UserInfo } from '../../registry/generic/strategy.ts';
import type { Authorizer } from './authorizer.ts';

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
