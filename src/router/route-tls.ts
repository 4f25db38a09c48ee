import { X509Certificate } from 'node:crypto';
import type { RouteRefusal } from '../network/http/route-claims.ts';
import { terminationOf } from '../network/http/route-rules.ts';
import type { Route } from '../objects/types/route.generated.ts';
import { keyPairProblem } from './certificates.ts';

/** Why the TLS of a Route cannot be served (`extended_validator.go` of the router of OpenShift). */
export function tlsProblem(route: Pick<Route, 'spec'>): RouteRefusal | undefined {
  const message = messageOf(route);
  return message === undefined ? undefined : { reason: 'ExtendedValidationFailed', message };
}

function messageOf(route: Pick<Route, 'spec'>): string | undefined {
  const { tls } = route.spec;
  if (tls === undefined) return undefined;
  const { certificate = '', key = '', caCertificate = '', destinationCACertificate = '' } = tls;
  const termination = terminationOf(route);
  if (termination === 'passthrough') {
    const given = [certificate, key, caCertificate, destinationCACertificate].some((pem) => pem !== '');
    return given ? 'a passthrough route has no certificates' : undefined;
  }
  if (termination === 'edge' && destinationCACertificate !== '') {
    return 'an edge route has no destinationCACertificate';
  }
  if ((certificate === '') !== (key === '')) return 'a certificate and its key come together';
  if (certificate !== '') {
    const problem = keyPairProblem({ certificate, key });
    if (problem !== undefined) return problem;
  }
  if (caCertificate !== '' && !isCertificate(caCertificate))
    return 'caCertificate is no PEM of a certificate';
  if (destinationCACertificate !== '' && !isCertificate(destinationCACertificate)) {
    return 'destinationCACertificate is no PEM of a certificate';
  }
  return undefined;
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem);
    return true;
  } catch {
    return false;
  }
}
