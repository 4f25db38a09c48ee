import type { ObjectKey } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { BackendObjectReference } from '../../objects/types/gateway.ts';
import type { BackendTls, HttpRule, RuleSource } from '../http/rules.ts';
import type { Problem } from './conditions.ts';
import type { Policies } from './policies.ts';
import type { References } from './references.ts';

/** The backends of one Route. Collects what is wrong with them. */
export class Backends {
  /** Of references that lead to nothing. */
  readonly problems: Problem[] = [];
  /** The Services to which the Route connects by their BackendTLSPolicies, if they have some. */
  readonly services = new Set<ObjectKey>();
  readonly #source: RuleSource;
  readonly #references: References;
  readonly #policies: Policies;

  constructor(source: RuleSource, references: References, policies: Policies) {
    this.#source = source;
    this.#references = references;
    this.#policies = policies;
  }

  /**
   * A rule with the one Service of a reference; undefined where requests for it fail.
   *
   * @param end whether the connection of the client ends at the router: only then it may put TLS of its own on those to
   *   the backend.
   */
  resolve(reference: BackendObjectReference, end: 'http' | 'tls' | 'none'): HttpRule | undefined {
    const found = this.#resolve(reference, end);
    if (!('reason' in found)) return found.rule;
    this.problems.push(found);
    return undefined;
  }

  #resolve(
    reference: BackendObjectReference,
    end: 'http' | 'tls' | 'none',
  ): { readonly rule: HttpRule | undefined } | Problem {
    const { kind, namespace } = this.#source;
    const key = this.#references.serviceKey({ kind, namespace }, reference, { kind: 'InvalidKind' });
    if (typeof key !== 'string') return key;
    const service = this.#references.service(key);
    if (service === undefined) {
      return { reason: 'BackendNotFound', message: `Service ${key} does not exist` };
    }
    if (service.spec.type === 'ExternalName') {
      // A name that whoever writes the Service chooses could lead to what only the router reaches.
      return { reason: 'InvalidKind', message: `Service ${key} is of type ExternalName` };
    }
    const transport = kind === 'UDPRoute' ? 'UDP' : 'TCP';
    const port = portOf(service, reference.port, transport);
    if (port === undefined) {
      const wanted = `${transport} port ${reference.port ?? '(none is named)'}`;
      return { reason: 'BackendNotFound', message: `Service ${key} has no ${wanted}` };
    }
    let backendTls: BackendTls | undefined;
    if (end !== 'none') {
      const tls = this.#policies.tlsTo(key, service, port.name ?? '');
      this.services.add(key);
      if (tls === 'broken') return { rule: undefined };
      backendTls = tls;
    }
    if (end === 'http' && !isSpoken(port.appProtocol, backendTls)) {
      const message = `Service ${key} speaks ${port.appProtocol ?? ''} at port ${port.port}, which is not supported`;
      return { reason: 'UnsupportedProtocol', message };
    }
    return { rule: this.#ruleOf(service, port.port, backendTls) };
  }

  #ruleOf({ metadata }: Service, port: number, backendTls: BackendTls | undefined): HttpRule {
    const { name = '', namespace = '' } = metadata;
    return {
      source: this.#source,
      ...{ host: '', path: '', match: 'Prefix' },
      backends: [{ namespace, service: name, port, weight: 1 }],
      ...{ termination: undefined, secure: true, insecure: 'Allow', redirectStatus: 302 },
      ...{ requestHeaders: [], responseHeaders: [], destinationCA: undefined, settings: undefined },
      backendTls,
    };
  }
}

type ServicePort = NonNullable<Service['spec']['ports']>[number];

function portOf({ spec }: Service, port: number | undefined, transport: string): ServicePort | undefined {
  return spec.ports?.find((one) => one.port === port && (one.protocol ?? 'TCP') === transport);
}

/** Of Kubernetes' own names of protocols, the router speaks these; other names are the user's, for HTTP. */
function isSpoken(appProtocol: string | undefined, tls: BackendTls | undefined): boolean {
  if (appProtocol?.startsWith('kubernetes.io/') !== true) return true;
  if (appProtocol === 'kubernetes.io/wss') return tls !== undefined;
  return appProtocol === 'kubernetes.io/h2c' || appProtocol === 'kubernetes.io/ws';
}
