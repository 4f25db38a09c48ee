import type { ClusterTrustBundle } from '../../objects/types/certificates.generated.ts';
import { genericStrategy } from '../generic/generic.ts';
import { validateImmutableField, validateObjectMeta, validateObjectMetaUpdate } from '../generic/metadata.ts';
import type { Strategy } from '../generic/strategy.ts';
import { type FieldError, invalid, maxErrorText, tooLong } from '../validation/field-errors.ts';
import type { CertificateReader } from './certificate-reader.ts';
import { bundleNameRule, validateSignerName } from './signer-name.ts';

/** In bytes. */
const maxTrustBundle = 2 ** 20;
const path = 'spec.trustBundle';

/** The rules of ClusterTrustBundles (`apis/certificates/validation` ValidateClusterTrustBundle). */
export function clusterTrustBundleStrategy(reader: CertificateReader): Strategy<ClusterTrustBundle> {
  const rules = genericStrategy<ClusterTrustBundle>({
    namespaced: false,
    metadataRules: 'none',
    nameRule: () => [],
    allowUnconditionalUpdate: false,
    setDefaults(bundle: Partial<Pick<ClusterTrustBundle, 'spec'>>) {
      bundle.spec ??= { trustBundle: '' };
    },
    fields: ({ spec }: Partial<Pick<ClusterTrustBundle, 'spec'>>) => ({
      'spec.signerName': spec?.signerName ?? '',
    }),
  });
  const validate = (
    { metadata, spec }: ClusterTrustBundle,
    old: ClusterTrustBundle | undefined,
  ): FieldError[] => {
    const { signerName = '', trustBundle } = spec;
    return [
      ...validateObjectMeta(metadata, { namespaced: false, nameRule: bundleNameRule(signerName) }),
      ...(signerName === '' ? [] : validateSignerName(signerName, 'spec.signerName')),
      ...(trustBundle === old?.spec.trustBundle ? [] : validateTrustBundle(trustBundle, reader)),
    ];
  };
  return {
    ...rules,
    validateCreate: (bundle) => validate(bundle, undefined),
    validateUpdate: (bundle, old) => [
      ...validate(bundle, old),
      ...validateObjectMetaUpdate(bundle.metadata, old.metadata),
      ...validateImmutableField(bundle.spec.signerName ?? '', old.spec.signerName ?? '', 'spec.signerName'),
    ],
  };
}

/** At least one authority, each once, and nothing else. */
function validateTrustBundle(bundle: string, reader: CertificateReader): FieldError[] {
  if (Buffer.byteLength(bundle) > maxTrustBundle) return [tooLong(path, maxTrustBundle)];
  const errors: FieldError[] = [];
  const places = new Map<string, number[]>();
  let index = 0;
  let length = 0;
  for (const block of reader.blocks(bundle)) {
    // What does not fit into the answer is not looked for: a bundle may have 20,000 blocks.
    if (length > maxErrorText) break;
    const fault = faultOf();
    if (fault === undefined) {
      const bytes = block.bytes.toString('base64');
      places.set(bytes, [...(places.get(bytes) ?? []), index]);
    } else {
      errors.push(omitted(`entry ${index} ${fault}`));
      length += fault.length + 60;
    }
    index++;

    function faultOf(): string | undefined {
      if (block.type !== 'CERTIFICATE') return `has bad block type: ${block.type}`;
      if (block.hasHeaders) return 'has PEM block headers';
      const certificate = reader.certificate(block);
      if (certificate === undefined) return 'does not parse as X.509';
      return certificate.isCA ? undefined : 'does not have the CA bit set';
    }
  }
  if (errors.length > 0) return errors;
  if (places.size === 0) return [omitted('at least one trust anchor must be provided')];
  return [...places.values()]
    .filter((indices) => indices.length > 1)
    .map((indices) => omitted(`duplicate trust anchor (indices [${indices.join(' ')}])`));
}

function omitted(detail: string): FieldError {
  return invalid(path, '<value omitted>', detail);
}
