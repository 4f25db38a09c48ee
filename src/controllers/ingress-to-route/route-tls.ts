import type { Secret } from '../../objects/types/core.generated.ts';
import type { Ingress } from '../../objects/types/networking.generated.ts';
import type { TLSConfig } from '../../objects/types/route.generated.ts';

/** Looks up a Secret of the Ingress' namespace by its name. */
export type NamedSecrets = (name: string) => Pick<Secret, 'type' | 'data'> | undefined;

const terminationAnnotation = 'route.openshift.io/termination';
const destinationAnnotation = 'route.openshift.io/destination-ca-certificate-secret';
const terminations = ['edge', 'passthrough', 'reencrypt'];

/**
 * How the TLS of a rule's Routes ends; undefined: there is none; a text: why they cannot be made. There is TLS where
 * `spec.tls` has the host, with its Secret, or has an empty entry, or where the annotation says how it ends.
 */
export function tlsOfRule(
  { metadata, spec }: Pick<Ingress, 'metadata' | 'spec'>,
  host: string,
  secrets: NamedSecrets,
): TLSConfig | string | undefined {
  const entries = spec.tls ?? [];
  const entry = entries.find(({ hosts }) => hosts?.includes(host));
  const certificate = entry === undefined ? undefined : certificateOf(secrets(entry.secretName ?? ''));
  if (entry !== undefined && certificate === undefined) {
    return `the Secret ${JSON.stringify(entry.secretName ?? '')} with the certificate of ${host} is missing, or of another type`;
  }
  const annotated = metadata.annotations?.[terminationAnnotation] ?? '';
  const isAnnotated = terminations.includes(annotated);
  const hasEmpty = entries.some(({ hosts = [], secretName = '' }) => hosts.length === 0 && secretName === '');
  if (!isAnnotated && certificate === undefined && !hasEmpty) return undefined;
  const termination = isAnnotated ? annotated : 'edge';
  const authority = authorityOf(secrets(metadata.annotations?.[destinationAnnotation] ?? ''));
  return {
    termination,
    insecureEdgeTerminationPolicy: 'Redirect',
    ...(termination === 'passthrough' ? {} : certificate),
    ...(termination === 'reencrypt' && authority !== undefined
      ? { destinationCACertificate: authority }
      : {}),
  };
}

function certificateOf(secret: ReturnType<NamedSecrets>): Pick<TLSConfig, 'certificate' | 'key'> | undefined {
  const { 'tls.crt': certificate, 'tls.key': key } = secret?.data ?? {};
  if (secret?.type !== 'kubernetes.io/tls' || certificate === undefined || key === undefined)
    return undefined;
  return { certificate: decoded(certificate), key: decoded(key) };
}

/** The authorities of the Pods' certificates. */
function authorityOf(secret: ReturnType<NamedSecrets>): string | undefined {
  const certificate = secret?.data?.['tls.crt'];
  const isOfType = secret?.type === 'kubernetes.io/tls' || secret?.type === 'Opaque';
  return isOfType && certificate !== undefined ? decoded(certificate) : undefined;
}

function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8');
}
