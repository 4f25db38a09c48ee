import { compareAge, keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { BackendTLSPolicy } from '../../objects/types/gateway.ts';
import type { BackendTls, KeyPair } from '../http/rules.ts';
import { type Problem, trueUnless } from './plan.ts';
import type { PlannedPolicy } from './plan.ts';
import type { References } from './references.ts';

/** What a BackendTLSPolicy says, whatever Service it is for. */
interface ReadPolicy {
  readonly policy: BackendTLSPolicy;
  /** Undefined: connections by it fail. */
  readonly tls: BackendTls | undefined;
  readonly rejected: Problem | undefined;
  readonly unresolved: Problem | undefined;
}

/** The policies of a Service. */
interface ServicePolicies {
  /** The one that counts, by the name of a port; "" for all ports. */
  readonly bySection: ReadonlyMap<string, ReadPolicy>;
  /** Why others do not count. */
  readonly rejected: ReadonlyMap<ReadPolicy, Problem>;
}

/** How connections to the ports of Services are secured, by BackendTLSPolicies. */
export class Policies {
  readonly #references: References;
  readonly #client: KeyPair | undefined;
  readonly #read = new Map<ObjectKey, ReadPolicy>();
  readonly #services = new Map<ObjectKey, ServicePolicies>();
  readonly #used = new Set<ObjectKey>();

  /** @param client the certificate that the Gateway shows to backends. */
  constructor(references: References, client: KeyPair | undefined) {
    this.#references = references;
    this.#client = client;
  }

  /**
   * TLS to a port of a Service; undefined: there is none; `broken`: the policy is not valid, and a connection without it
   * would be less than was asked for.
   *
   * @param portName "" for a port without one.
   */
  tlsTo(key: ObjectKey, service: Service, portName: string): BackendTls | 'broken' | undefined {
    const { bySection } = this.#ofService(key, service);
    const read = (portName === '' ? undefined : bySection.get(portName)) ?? bySection.get('');
    return read === undefined ? undefined : (read.tls ?? 'broken');
  }

  /** Notes that a Route of the Gateway leads to a Service: its policies have the Gateway as an ancestor. */
  use(service: ObjectKey): void {
    this.#used.add(service);
  }

  /** The policies of the Services that are used. */
  planned(): readonly PlannedPolicy[] {
    const problems = new Map<ReadPolicy, Problem | undefined>();
    for (const key of this.#used) {
      const { bySection, rejected } = this.#services.get(key) ?? noPolicies;
      for (const read of bySection.values()) problems.set(read, problems.get(read));
      for (const [read, problem] of rejected) problems.set(read, problems.get(read) ?? problem);
    }
    return [...problems].map(([{ policy, rejected, unresolved }, problem]) => ({
      key: keyOf(policy),
      generation: policy.metadata.generation ?? 0,
      conditions: [
        trueUnless('Accepted', problem ?? rejected, 'The Gateway connects to the Service by this policy'),
        trueUnless('ResolvedRefs', unresolved, 'All references are resolved'),
      ],
    }));
  }

  #ofService(key: ObjectKey, service: Service): ServicePolicies {
    let known = this.#services.get(key);
    if (known === undefined) {
      const policies = this.#references.policies(key).toSorted(compareAge);
      known = policies.length === 0 ? noPolicies : this.#choose(key, service, policies);
      this.#services.set(key, known);
    }
    return known;
  }

  #choose(key: ObjectKey, service: Service, policies: readonly BackendTLSPolicy[]): ServicePolicies {
    const bySection = new Map<string, ReadPolicy>();
    const rejected = new Map<ReadPolicy, Problem>();
    const ports = new Set((service.spec.ports ?? []).map(({ name = '' }) => name));
    for (const policy of policies) {
      const read = this.#readOnce(policy);
      for (const { group = '', kind = 'Service', name, sectionName = '' } of policy.spec.targetRefs) {
        if (group !== '' || kind !== 'Service' || name !== service.metadata.name) continue;
        const winner = bySection.get(sectionName);
        if (sectionName !== '' && !ports.has(sectionName)) {
          const message = `Service ${key} has no port with the name ${sectionName}`;
          rejected.set(read, { reason: 'TargetNotFound', message });
        } else if (winner === undefined) {
          bySection.set(sectionName, read);
        } else if (winner !== read) {
          const message = `BackendTLSPolicy ${keyOf(winner.policy)} is for Service ${key} too, and comes first`;
          rejected.set(read, { reason: 'Conflicted', message });
        }
      }
    }
    return { bySection, rejected };
  }

  #readOnce(policy: BackendTLSPolicy): ReadPolicy {
    const key = keyOf(policy);
    const known = this.#read.get(key) ?? readPolicy(policy, this.#client, this.#references);
    this.#read.set(key, known);
    return known;
  }
}

const noPolicies: ServicePolicies = { bySection: new Map(), rejected: new Map() };

function readPolicy(
  policy: BackendTLSPolicy,
  client: KeyPair | undefined,
  references: References,
): ReadPolicy {
  const { validation, options = {} } = policy.spec;
  const { caCertificateRefs = [], wellKnownCACertificates = '', subjectAltNames = [], hostname } = validation;
  const from = { kind: 'BackendTLSPolicy', namespace: policy.metadata.namespace ?? '' };
  const reasons = { kind: 'InvalidKind', object: 'InvalidCACertificateRef' };
  const authorities: string[] = [];
  let unresolved: Problem | undefined;
  for (const reference of caCertificateRefs) {
    const found = references.authority(from, reference, reasons);
    if ('pem' in found) authorities.push(found.pem);
    else unresolved ??= found;
  }
  const invalid = (message: string): ReadPolicy => ({
    ...{ policy, unresolved, tls: undefined },
    rejected: { reason: 'Invalid', message },
  });
  const isSystem = caCertificateRefs.length === 0;
  if (isSystem && wellKnownCACertificates !== 'System') {
    return invalid(
      wellKnownCACertificates === ''
        ? 'Neither caCertificateRefs nor wellKnownCACertificates says whom to trust'
        : `wellKnownCACertificates ${wellKnownCACertificates} is not supported`,
    );
  }
  const option = Object.keys(options)[0];
  if (option !== undefined) return invalid(`Option ${option} is not supported`);
  const names: { type: 'Hostname' | 'URI'; value: string }[] = [];
  for (const { type, hostname: host = '', uri = '' } of subjectAltNames) {
    if (type === 'Hostname') names.push({ type, value: host });
    else if (type === 'URI') names.push({ type, value: uri });
    else return invalid(`Subject alternative names of type ${type} are not supported`);
  }
  if (!isSystem && authorities.length === 0) {
    const message = unresolved?.message ?? '';
    return { policy, tls: undefined, rejected: { reason: 'NoValidCACertificate', message }, unresolved };
  }
  const ca = isSystem ? undefined : authorities.join('\n');
  return { policy, tls: { serverName: hostname, ca, names, client }, rejected: undefined, unresolved };
}
