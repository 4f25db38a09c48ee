import { joinKey, type ObjectKey } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { BackendTLSPolicy, ObjectReference, ReferenceGrant } from '../../objects/types/gateway.ts';
import type { KeyPair } from '../http/rules.ts';
import type { Problem } from './plan.ts';
import { gatewayGroup, type GatewayObjects } from './plan.ts';

/** The object that a reference is in. */
export interface Referrer {
  /** Of the group of Gateway API. */
  readonly kind: string;
  readonly namespace: string;
}

/** What a reference leads to: its defaults filled in. */
interface Target {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** Reasons of a kind of references, where they lead to nothing that can be used. */
export interface ReferenceReasons {
  readonly kind: string;
  readonly object: string;
}

/**
 * What the objects of a plan refer to. A reference into another namespace needs a ReferenceGrant there; without one it
 * is not permitted, whether its target exists or not. Remembers what was looked up.
 */
export class References {
  /** As {@link GatewayPlan.lookups}. */
  readonly lookups = new Set<string>();
  readonly #objects: GatewayObjects;
  readonly #grants = new Map<string, Grants>();

  constructor(objects: GatewayObjects) {
    this.#objects = objects;
  }

  service(key: ObjectKey): Service | undefined {
    this.lookups.add(`Service ${key}`);
    return this.#objects.service(key);
  }

  policies(service: ObjectKey): readonly BackendTLSPolicy[] {
    this.lookups.add(`BackendTLSPolicy ${service}`);
    return this.#objects.policies(service);
  }

  namespaceLabels(namespace: string): Readonly<Record<string, string>> | undefined {
    this.lookups.add(`Namespace ${namespace}`);
    return this.#objects.namespaceLabels(namespace);
  }

  /** A certificate in a Secret. */
  certificate(
    from: Referrer,
    reference: ObjectReference,
    reasons: ReferenceReasons,
  ): { readonly pair: KeyPair } | Problem {
    const target = targetOf(from, reference, 'Secret');
    const problem = this.#problem(from, target, 'Secret', reasons);
    if (problem !== undefined) return problem;
    const key = joinKey(target.namespace, target.name);
    this.lookups.add(`Secret ${key}`);
    const found = this.#objects.certificate(key);
    if (found === undefined) return { reason: reasons.object, message: `Secret ${key} does not exist` };
    if ('problem' in found) return { reason: reasons.object, message: `Secret ${key}: ${found.problem}` };
    return { pair: found };
  }

  /** The certificates of authorities in a ConfigMap. */
  authority(
    from: Referrer,
    reference: ObjectReference,
    reasons: ReferenceReasons,
  ): { readonly pem: string } | Problem {
    const target = targetOf(from, reference, 'ConfigMap');
    const problem = this.#problem(from, target, 'ConfigMap', reasons);
    if (problem !== undefined) return problem;
    const key = joinKey(target.namespace, target.name);
    this.lookups.add(`ConfigMap ${key}`);
    const found = this.#objects.authority(key);
    if (found === undefined) return { reason: reasons.object, message: `ConfigMap ${key} does not exist` };
    if (typeof found === 'string') return { pem: found };
    return { reason: reasons.object, message: `ConfigMap ${key}: ${found.problem}` };
  }

  /** The key of a Service. */
  serviceKey(
    from: Referrer,
    reference: ObjectReference,
    reasons: Pick<ReferenceReasons, 'kind'>,
  ): ObjectKey | Problem {
    const target = targetOf(from, reference, 'Service');
    return this.#problem(from, target, 'Service', reasons) ?? joinKey(target.namespace, target.name);
  }

  /** The one kind that is known, then the grant: whether the target exists does not matter before. */
  #problem(
    from: Referrer,
    target: Target,
    kind: string,
    reasons: Pick<ReferenceReasons, 'kind'>,
  ): Problem | undefined {
    if (target.group !== '' || target.kind !== kind) {
      const given = target.group === '' ? target.kind : `${target.group}/${target.kind}`;
      return {
        reason: reasons.kind,
        message: `${target.name} is a ${given}; only a ${kind} is supported here`,
      };
    }
    if (this.#permits(from, target)) return undefined;
    const message = `No ReferenceGrant of namespace ${target.namespace} lets a ${from.kind} of namespace ${from.namespace} refer to ${kind} ${target.name}`;
    return { reason: 'RefNotPermitted', message };
  }

  #permits(from: Referrer, target: Target): boolean {
    if (from.namespace === target.namespace) return true;
    let grants = this.#grants.get(target.namespace);
    if (grants === undefined) {
      this.lookups.add(`ReferenceGrant ${target.namespace}`);
      grants = new Grants(this.#objects.grants(target.namespace));
      this.#grants.set(target.namespace, grants);
    }
    return grants.permits(from, target);
  }
}

function targetOf(from: Referrer, reference: ObjectReference, kind: string): Target {
  return {
    group: reference.group ?? '',
    kind: reference.kind ?? kind,
    namespace: reference.namespace ?? from.namespace,
    name: reference.name,
  };
}

/** The ReferenceGrants of one namespace; what one of them permits is permitted. */
export class Grants {
  /** Who may refer to which kind → the names; all for undefined. */
  readonly #names = new Map<string, Set<string | undefined>>();

  constructor(grants: readonly ReferenceGrant[]) {
    for (const { spec } of grants) {
      for (const from of spec.from) {
        for (const to of spec.to) {
          const key = grantKey(from.group, from.kind, from.namespace, to.group, to.kind);
          const names = this.#names.get(key) ?? new Set();
          names.add(to.name === '' ? undefined : to.name);
          this.#names.set(key, names);
        }
      }
    }
  }

  permits(from: Referrer, to: Pick<Target, 'group' | 'kind' | 'name'>): boolean {
    const names = this.#names.get(grantKey(gatewayGroup, from.kind, from.namespace, to.group, to.kind));
    return names !== undefined && (names.has(undefined) || names.has(to.name));
  }
}

function grantKey(...parts: readonly string[]): string {
  return parts.join(' ');
}
