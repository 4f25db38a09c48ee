import { compareText } from '../../../objects/formats/go-text.ts';
import { joinKey, splitKey } from '../../../objects/meta.ts';
import type {
  Gateway,
  GatewayListener,
  ListenerSet,
  ParentReference,
  ReferenceGrant,
} from '../../../objects/types/gateway.ts';
import type { Ingress } from '../../../objects/types/networking.generated.ts';
import { plainHost, wildcardOf } from '../../http/rules.ts';
import { gatewayGroup } from '../plan.ts';
import type { Note } from './annotations.ts';

/** The listeners that the Ingresses of a class need. Pure. */

/** Of a Gateway or a ListenerSet. */
const maxListeners = 64;
/** Objects that a ReferenceGrant names. */
const maxGranted = 16;

/** Names that nothing else has. */
export class UniqueNames {
  readonly #taken = new Set<string>();

  /** @param namespace "" for what is in none. */
  of(namespace: string, wanted: string): string {
    const base = cutName(wanted);
    for (let number = 1; ; number++) {
      const name = number === 1 ? base : `${base}-${number}`;
      const key = joinKey(namespace, name);
      if (this.#taken.has(key)) continue;
      this.#taken.add(key);
      return name;
    }
  }
}

/** The beginning of a name, with room for a number, that ends as a name may. */
function cutName(wanted: string): string {
  let end = Math.min(wanted.length, 240);
  while ('-.'.includes(wanted.charAt(end - 1)) && end > 0) end -= 1;
  return wanted.slice(0, end);
}

/** A host as a part of the name of an object. */
export function nameOfHost(host: string): string {
  return host.replace('*', 'wildcard');
}

/** Parts of a list with at most that many items. */
export function chunks<T>(list: readonly T[], size: number): T[][] {
  const parts: T[][] = [];
  for (let from = 0; from < list.length; from += size) parts.push(list.slice(from, from + size));
  return parts;
}

/** A listener of port 443. */
interface SecureListener {
  readonly host: string;
  /** The key of its Secret; undefined: TLS passes through. */
  readonly secret: string | undefined;
  /** Namespaces of its Routes. */
  readonly namespaces: Set<string>;
  /** Undefined until it has its place. */
  place:
    { readonly kind: 'Gateway' | 'ListenerSet'; readonly name: string; readonly section: string } | undefined;
}

/** The Gateway of a class, and ListenerSets for those listeners that it has no room for. */
export class ImportedListeners {
  readonly #name: string;
  readonly #namespace: string;
  readonly #className: string;
  /** By host, lower case; "" for all. */
  readonly #secure = new Map<string, SecureListener>();
  readonly #plainNamespaces = new Set<string>();

  constructor(name: string, namespace: string, className: string) {
    this.#name = name;
    this.#namespace = namespace;
    this.#className = className;
  }

  /** TLS for a host ends at its backends. Goes before certificates for it. */
  addPassthrough(host: string): void {
    if (!this.#secure.has(host)) this.#add(host, undefined);
  }

  /**
   * Adds the hosts of `spec.tls`.
   *
   * @param hosts of its rules: those of an entry that names none.
   * @param aliases have the certificate of the first host.
   */
  addCertificates(
    { spec, metadata }: Ingress,
    hosts: readonly string[],
    aliases: readonly string[],
    note: Note,
  ): void {
    for (const { hosts: named = [], secretName = '' } of spec.tls ?? []) {
      const all = named.length === 0 ? hosts : named.map(plainHost);
      if (secretName === '') {
        note(
          `${list(all)} without a listener for TLS: spec.tls names no Secret, and a Gateway has no default certificate`,
        );
        continue;
      }
      if (named.length === 0)
        note(`spec.tls names no host: the Secret ${secretName} is taken for ${list(all)}`);
      const secret = joinKey(metadata.namespace ?? '', secretName);
      const [first = ''] = hosts;
      for (const host of [...all, ...(isCovered(new Set(all), first) ? aliases : [])]) {
        const known = this.#secure.get(host);
        if (known === undefined) this.#add(host, secret);
        else if (known.secret === undefined)
          note(`${secretName} not imported for ${host}: its TLS passes through`);
        else if (known.secret !== secret) {
          note(`${secretName} not imported for ${host}: an older Ingress has ${known.secret} for it`);
        }
      }
    }
  }

  #add(host: string, secret: string | undefined): void {
    this.#secure.set(host, { host, secret, namespaces: new Set(), place: undefined });
  }

  /** Gives each listener its place. Afterwards none is added. */
  place(): void {
    const sections = new UniqueNames();
    const all = [...this.#secure.values()].sort((a, b) => compareText(a.host, b.host));
    // One place is for port 80.
    for (const [i, listener] of all.entries()) {
      const number = Math.floor((i + 1) / maxListeners);
      const wanted = `${listener.secret === undefined ? 'tls' : 'https'}-${nameOfHost(listener.host)}`;
      listener.place = {
        kind: number === 0 ? 'Gateway' : 'ListenerSet',
        name: number === 0 ? this.#name : `${this.#name}-${number + 1}`,
        section: sections.of('', wanted),
      };
    }
  }

  /** Whether an Ingress itself has a certificate for a host. */
  isOfIngress({ spec }: Ingress, host: string): boolean {
    return (spec.tls ?? []).some(
      ({ hosts = [] }) => hosts.length === 0 || isCovered(new Set(hosts.map(plainHost)), host),
    );
  }

  /** The listener of port 80, as the parent of a Route. */
  plainParent(namespace: string): ParentReference {
    this.#plainNamespaces.add(namespace);
    return this.#parent({ kind: 'Gateway', name: this.#name, section: 'http' }, namespace);
  }

  /** The listeners of port 443 for a Route's hosts. @param hosts "" for all. */
  secureParents(hosts: readonly string[], namespace: string): ParentReference[] {
    const found = hosts.flatMap(
      (host) => this.#secure.get(host) ?? this.#secure.get(wildcardOf(host) ?? host) ?? [],
    );
    return [...new Set(found)].flatMap(({ place, namespaces }) => {
      namespaces.add(namespace);
      return place === undefined ? [] : [this.#parent(place, namespace)];
    });
  }

  #parent({ kind, name, section }: NonNullable<SecureListener['place']>, namespace: string): ParentReference {
    return {
      ...(kind === 'Gateway' ? {} : { kind }),
      name,
      ...(namespace === this.#namespace ? {} : { namespace: this.#namespace }),
      sectionName: section,
    };
  }

  /** The Gateway, its ListenerSets, and leave to use Secrets of other namespaces. */
  objects(): (Gateway | ListenerSet | ReferenceGrant)[] {
    const [name, namespace] = [this.#name, this.#namespace];
    const placed = [...this.#secure.values()].sort((a, b) => compareText(a.host, b.host));
    const of = (owner: string): GatewayListener[] =>
      placed.filter(({ place }) => place?.name === owner).map((one) => this.#listener(one));
    const plain = { name: 'http', port: 80, protocol: 'HTTP', ...this.#allowed(this.#plainNamespaces) };
    const others = new Set(
      placed.flatMap(({ place }) => (place?.kind === 'ListenerSet' ? [place.name] : [])),
    );
    const gateway: Gateway = {
      apiVersion: `${gatewayGroup}/v1`,
      kind: 'Gateway',
      metadata: { namespace, name },
      spec: {
        gatewayClassName: this.#className,
        ...(others.size === 0 ? {} : { allowedListeners: { namespaces: { from: 'Same' } } }),
        listeners: [plain, ...of(name)],
      },
    };
    const sets = [...others].map((set): ListenerSet => ({
      apiVersion: `${gatewayGroup}/v1`,
      kind: 'ListenerSet',
      metadata: { namespace, name: set },
      spec: { parentRef: { name }, listeners: of(set) },
    }));
    return [gateway, ...sets, ...this.#grants(placed)];
  }

  #listener({ host, secret, namespaces, place }: SecureListener): GatewayListener {
    const { namespace, name } = splitKey(secret ?? '');
    const reference = namespace === this.#namespace ? { name } : { name, namespace };
    return {
      ...{ name: place?.section ?? '', port: 443, protocol: secret === undefined ? 'TLS' : 'HTTPS' },
      ...(host === '' ? {} : { hostname: host }),
      tls: secret === undefined ? { mode: 'Passthrough' } : { certificateRefs: [reference] },
      ...this.#allowed(namespaces),
    };
  }

  /** Routes of those namespaces alone, which is the default for the Gateway's own. */
  #allowed(namespaces: ReadonlySet<string>): Pick<GatewayListener, 'allowedRoutes'> {
    const values = [...namespaces].sort();
    if (values.every((namespace) => namespace === this.#namespace)) return {};
    const key = 'kubernetes.io/metadata.name';
    const selector = { matchExpressions: [{ key, operator: 'In', values }] };
    return { allowedRoutes: { namespaces: { from: 'Selector', selector } } };
  }

  #grants(placed: readonly SecureListener[]): ReferenceGrant[] {
    const byNamespace = new Map<string, { readonly kinds: Set<string>; readonly names: Set<string> }>();
    for (const { secret, place } of placed) {
      if (secret === undefined) continue;
      const { namespace, name } = splitKey(secret);
      if (namespace === this.#namespace) continue;
      const granted = byNamespace.get(namespace) ?? { kinds: new Set(), names: new Set() };
      byNamespace.set(namespace, granted);
      granted.kinds.add(place?.kind ?? 'Gateway');
      granted.names.add(name);
    }
    return [...byNamespace].flatMap(([namespace, { kinds, names }]) =>
      chunks([...names].sort(), maxGranted).map((some, i): ReferenceGrant => ({
        apiVersion: `${gatewayGroup}/v1beta1`,
        kind: 'ReferenceGrant',
        metadata: { namespace, name: `${this.#name}-secrets${i === 0 ? '' : `-${i + 1}`}` },
        spec: {
          from: [...kinds].sort().map((kind) => ({ group: gatewayGroup, kind, namespace: this.#namespace })),
          to: some.map((name) => ({ group: '', kind: 'Secret', name })),
        },
      })),
    );
  }
}

/** Whether a host or the wildcard for it is in a set. */
function isCovered(hosts: ReadonlySet<string>, host: string): boolean {
  return hosts.has(host) || hosts.has(wildcardOf(host) ?? host);
}

function list(hosts: readonly string[]): string {
  return hosts.map((host) => (host === '' ? 'all hosts' : host)).join(', ');
}
