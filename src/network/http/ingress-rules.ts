import type { Ingress, IngressBackend } from '../../objects/types/networking.generated.ts';
import {
  type Backend,
  type HttpRule,
  type PathMatch,
  plainHost,
  type RuleSource,
  wildcardOf,
} from './rule.ts';

/** On an Ingress with TLS: `false` serves requests without TLS too, instead of sending them to https. */
const redirectAnnotation = 'servicenet.dev/ssl-redirect';

/** The rules that an Ingress adds to the table. */
export interface IngressRules {
  readonly rules: readonly HttpRule[];
  /** For requests that no rule of any object matches. */
  readonly defaults: readonly HttpRule[];
}

/**
 * The rules of an Ingress. Left out are backends that are no Services, as ingress-nginx does. Without `http`, a host's
 * requests are for the default backend. ImplementationSpecific paths match as Prefix.
 */
export function ingressRules(ingress: Pick<Ingress, 'metadata' | 'spec'>): IngressRules {
  const { metadata, spec } = ingress;
  const namespace = metadata.namespace ?? '';
  const source: RuleSource = {
    kind: 'Ingress',
    namespace,
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    created: metadata.creationTimestamp ?? '',
  };
  const secured = new Set((spec.tls ?? []).flatMap(({ hosts }) => hosts ?? []).map(plainHost));
  const redirects = metadata.annotations?.[redirectAnnotation] !== 'false';
  const ruleOf = (host: string, path: string, match: PathMatch, backend: Backend): HttpRule => {
    const hasTls = secured.has(host) || secured.has(wildcardOf(host) ?? host);
    return {
      ...{ source, host, match, path },
      backends: [backend],
      termination: hasTls ? 'edge' : undefined,
      secure: true,
      insecure: hasTls && redirects ? 'Redirect' : 'Allow',
      redirectStatus: 308,
      requestHeaders: [],
      responseHeaders: [],
      destinationCA: undefined,
    };
  };
  const rules: HttpRule[] = [];
  const hosts = new Set<string>(['']);
  for (const rule of spec.rules ?? []) {
    const host = plainHost(rule.host ?? '');
    hosts.add(host);
    for (const { path = '', pathType, backend } of rule.http?.paths ?? []) {
      const to = serviceOf(backend, namespace);
      if (to === undefined) continue;
      const match = pathType === 'Exact' || pathType === 'Prefix' ? pathType : 'ImplementationSpecific';
      rules.push(ruleOf(host, match === 'Exact' ? path : withoutSlash(path), match, to));
    }
  }
  const fallback = spec.defaultBackend === undefined ? undefined : serviceOf(spec.defaultBackend, namespace);
  const defaults =
    fallback === undefined ? [] : [...hosts].map((host) => ruleOf(host, '', 'Prefix', fallback));
  return { rules, defaults };
}

/** One slash at the end counts for nothing: elements are compared. */
function withoutSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}

function serviceOf({ service }: IngressBackend, namespace: string): Backend | undefined {
  if (service === undefined) return undefined;
  const { name = '', number = 0 } = service.port ?? {};
  return { namespace, service: service.name, port: name === '' ? number : name, weight: 1 };
}
