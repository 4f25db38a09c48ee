import type { ServiceAccount } from '../../objects/types/core.generated.ts';
import { genericStrategy } from '../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';

const mountableAnnotation = 'kubernetes.io/enforce-mountable-secrets';

/** The rules of ServiceAccounts (`pkg/registry/core/serviceaccount/strategy.go`). */
export const serviceAccountStrategy = genericStrategy<ServiceAccount>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  deleteReturnsObject: true,
  repeatsCreate: 'after',
  prepareForCreate: cleanSecretReferences,
  prepareForUpdate: cleanSecretReferences,
  warningsOnCreate: (account) => mountableWarnings(account),
  warningsOnUpdate: (account, old) => (mountableWarnings(old).length > 0 ? [] : mountableWarnings(account)),
});

/** Only the names of secrets are kept. */
function cleanSecretReferences(account: ServiceAccount): void {
  if (account.secrets === undefined) return;
  account.secrets = account.secrets.map(({ name }) => (name === undefined ? {} : { name }));
}

function mountableWarnings({ metadata }: ServiceAccount): string[] {
  if (metadata.annotations === undefined || !Object.hasOwn(metadata.annotations, mountableAnnotation))
    return [];
  return [
    `metadata.annotations[${mountableAnnotation}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`,
  ];
}
