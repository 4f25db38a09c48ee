import { errorMessage } from '../../objects/status.ts';
import {
  compileLabelSelector,
  matchesLabels,
  type ParsedLabelSelector,
} from '../../objects/selectors/labels.ts';
import { pushAll } from '../../objects/lists.ts';
import { joinKey, type ObjectKey } from '../../objects/meta.ts';
import type { Gateway, GatewayListener, ListenerSet, RouteNamespaces } from '../../objects/types/gateway.ts';
import type { KeyPair } from '../http/rules.ts';
import type { Problem } from './plan.ts';
import { widerHostnames } from './hostnames.ts';
import {
  type ClientValidation,
  gatewayGroup,
  type ListenerTls,
  type PlannedListener,
  type PlannedPort,
  type RouteKind,
} from './plan.ts';
import type { References, Referrer } from './references.ts';

/** The listeners of a Gateway and its ListenerSets: what each can serve, and which stand in each other's way. */

type Protocol = PlannedListener['protocol'];

/** Whose listener it is. */
export interface ListenerOwner extends Referrer {
  readonly kind: 'Gateway' | 'ListenerSet';
  readonly key: ObjectKey;
}

/** A listener as far as it does not depend on Routes. */
export interface Listener {
  readonly owner: ListenerOwner;
  readonly spec: GatewayListener;
  readonly id: string;
  /** Undefined for one that is not supported. */
  readonly protocol: Protocol | undefined;
  /** Lower case; "" for all, and for TCP and UDP. */
  readonly hostname: string;
  /** The kinds of Routes that it serves, of those that it allows. */
  readonly kinds: readonly RouteKind[];
  readonly tls: ListenerTls | undefined;
  /** Why it is not accepted. */
  readonly rejected: Problem | undefined;
  /** Whether it is rejected because of another listener. */
  readonly isConflicted: boolean;
  /** Why a reference of it leads to nothing; others may be good. */
  readonly unresolved: Problem | undefined;
  /** Whether it can be served. */
  readonly isServed: boolean;
  /** Whether another listener's hostname covers this one, or the other way round, where both have certificates. */
  readonly isOverlapping: boolean;
  /** Whether Routes of a namespace may attach. */
  allows(namespace: string): boolean;
}

/** All listeners of a Gateway. */
export interface MergedListeners {
  readonly own: readonly Listener[];
  readonly sets: readonly { readonly set: ListenerSet; readonly listeners: readonly Listener[] }[];
}

/** Which part of a port a protocol takes; one port has one of HTTP, TLS and TCP, and UDP beside it. */
const parts: Readonly<Record<Protocol, PlannedPort['protocol']>> = {
  ...{ HTTP: 'HTTP', HTTPS: 'TLS', TLS: 'TLS', TCP: 'TCP', UDP: 'UDP' },
};

const routeKinds: Readonly<Record<Protocol, readonly RouteKind[]>> = {
  ...{ HTTP: ['HTTPRoute', 'GRPCRoute'], HTTPS: ['HTTPRoute', 'GRPCRoute'] },
  ...{ TLS: ['TLSRoute'], TCP: ['TCPRoute'], UDP: ['UDPRoute'] },
};

/** The part of its port that a protocol takes. */
export function portPart(protocol: Protocol): PlannedPort['protocol'] {
  return parts[protocol];
}

function isProtocol(text: string): text is Protocol {
  return Object.hasOwn(parts, text);
}

interface Draft extends Omit<Listener, 'isOverlapping'> {
  isOverlapping: boolean;
}

/**
 * The listeners of a Gateway, then those of its ListenerSets. Of the Gateway's own, all that conflict are rejected; one
 * of a ListenerSet is rejected alone where it conflicts with one before it.
 *
 * @param sets that the Gateway allows, in the order in which they come.
 */
export function planListeners(
  gateway: Gateway,
  sets: readonly ListenerSet[],
  references: References,
): MergedListeners {
  const { namespace = '', name = '' } = gateway.metadata;
  const frontend = new FrontendValidation(gateway, references);
  const claims = new PortClaims();
  const drafts: Draft[] = [];

  const owner: ListenerOwner = { kind: 'Gateway', key: joinKey(namespace, name), namespace };
  for (const { port, protocol, hostname } of gateway.spec.listeners) claims.add(port, protocol, hostname);
  const own = gateway.spec.listeners.map((spec) => {
    const conflict = claims.conflict(spec.port, spec.protocol, spec.hostname, true);
    return draftOf(owner, spec, conflict, frontend, references);
  });
  pushAll(drafts, own);

  const setListeners = sets.map((set) => {
    const { namespace: space = '', name: setName = '' } = set.metadata;
    const setOwner: ListenerOwner = { kind: 'ListenerSet', key: joinKey(space, setName), namespace: space };
    const listeners = set.spec.listeners.map((spec) => {
      const conflict = claims.conflict(spec.port, spec.protocol, spec.hostname, false);
      if (conflict === undefined) claims.add(spec.port, spec.protocol, spec.hostname);
      return draftOf(setOwner, spec, conflict, frontend, references);
    });
    pushAll(drafts, listeners);
    return { set, listeners };
  });
  markOverlaps(drafts);
  return { own, sets: setListeners };
}

/** What listeners take of the ports: by it, conflicts are found in one step each. */
class PortClaims {
  readonly #counts = new Map<string, number>();

  add(port: number, protocol: string, hostname = ''): void {
    if (!isProtocol(protocol)) return;
    for (const key of this.#keys(port, protocol, hostname)) {
      this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    }
  }

  /** @param isAdded whether this listener itself is among those that were added. */
  conflict(port: number, protocol: string, hostname = '', isAdded: boolean): Problem | undefined {
    if (!isProtocol(protocol)) return undefined;
    const [transport, part, server, same] = this.#keys(port, protocol, hostname).map(
      (key) => (this.#counts.get(key) ?? 0) - Number(isAdded),
    );
    const others = transport ?? 0;
    const ofPart = part ?? 0;
    const message = (what: string): string => `Port ${port} has ${what}`;
    if (others > ofPart) {
      return { reason: 'ProtocolConflict', message: message(`listeners that do not go with ${protocol}`) };
    }
    if ((protocol === 'TCP' || protocol === 'UDP') && ofPart > 0) {
      return { reason: 'ProtocolConflict', message: message(`more than one listener of ${protocol}`) };
    }
    const host = hostname === '' ? 'no hostname' : `hostname ${hostname}`;
    if ((same ?? 0) > 0) {
      return { reason: 'HostnameConflict', message: message(`another listener of ${protocol} with ${host}`) };
    }
    if ((server ?? 0) > 0) {
      return { reason: 'ProtocolConflict', message: message(`HTTPS and TLS with ${host}`) };
    }
    return undefined;
  }

  /** From the widest claim to the narrowest. */
  #keys(port: number, protocol: Protocol, hostname: string): readonly string[] {
    const part = portPart(protocol);
    const host = protocol === 'TCP' || protocol === 'UDP' ? '' : hostname.toLowerCase();
    return [
      `${port} ${part === 'UDP' ? 'UDP' : 'stream'}`,
      `${port} part ${part}`,
      `${port} server ${part} ${host}`,
      `${port} same ${protocol} ${host}`,
    ];
  }
}

function draftOf(
  owner: ListenerOwner,
  spec: GatewayListener,
  conflict: Problem | undefined,
  frontend: FrontendValidation,
  references: References,
): Draft {
  const protocol = isProtocol(spec.protocol) ? spec.protocol : undefined;
  const named = protocol !== 'TCP' && protocol !== 'UDP';
  const { kinds, problem: wrongKinds } = kindsOf(spec, protocol);
  const tls = protocol === 'HTTPS' || protocol === 'TLS' ? readTls(owner, spec, references) : undefined;
  const clients = protocol === 'HTTPS' ? frontend.ofPort(spec.port) : undefined;
  const allowed = readNamespaces(spec.allowedRoutes?.namespaces, 'Same', owner.namespace, references);
  const unsupported: Problem | undefined =
    protocol === undefined
      ? {
          reason: 'UnsupportedProtocol',
          message: `Protocol ${spec.protocol} is none of ${Object.keys(parts).join(', ')}`,
        }
      : undefined;
  const rejected = unsupported ?? conflict ?? tls?.rejected ?? clients?.rejected ?? allowed.problem;
  const certificates = tls?.certificates ?? [];
  const mode = tls?.mode ?? 'Terminate';
  return {
    ...{ owner, spec, protocol, kinds, rejected },
    id: `${owner.kind} ${owner.key} ${spec.name}`,
    hostname: named ? (spec.hostname ?? '').toLowerCase() : '',
    tls: tls === undefined ? undefined : { mode, certificates, clients: clients?.validation },
    isConflicted: conflict !== undefined && conflict === rejected,
    unresolved: tls?.unresolved ?? clients?.unresolved ?? wrongKinds,
    isServed:
      rejected === undefined &&
      kinds.length > 0 &&
      (tls === undefined || mode === 'Passthrough' || certificates.length > 0),
    isOverlapping: false,
    allows: allowed.allows,
  };
}

/** The kinds of Routes that a listener serves, and what is wrong with those that it asks for. */
function kindsOf(
  { allowedRoutes, protocol: text }: GatewayListener,
  protocol: Protocol | undefined,
): { readonly kinds: readonly RouteKind[]; readonly problem: Problem | undefined } {
  const supported = protocol === undefined ? [] : routeKinds[protocol];
  const asked = allowedRoutes?.kinds ?? [];
  if (asked.length === 0) return { kinds: supported, problem: undefined };
  const kinds = supported.filter((kind) =>
    asked.some((one) => (one.group ?? gatewayGroup) === gatewayGroup && one.kind === kind),
  );
  const wrong = asked.filter(
    ({ group = gatewayGroup, kind }) =>
      group !== gatewayGroup || !kinds.some((supportedKind) => supportedKind === kind),
  );
  if (wrong.length === 0) return { kinds, problem: undefined };
  const message = `A listener of ${text} does not serve ${wrong.map(({ kind }) => kind).join(', ')}`;
  return { kinds, problem: { reason: 'InvalidRouteKinds', message } };
}

interface TlsParts {
  readonly mode: ListenerTls['mode'];
  readonly certificates: readonly KeyPair[];
  readonly rejected: Problem | undefined;
  readonly unresolved: Problem | undefined;
}

function readTls(
  owner: ListenerOwner,
  { protocol, tls = {} }: GatewayListener,
  references: References,
): TlsParts {
  const { mode: text = 'Terminate', certificateRefs = [], options = {} } = tls;
  const mode = text === 'Passthrough' ? 'Passthrough' : 'Terminate';
  const rejected = unsupportedTls(protocol, text, Object.keys(options), certificateRefs.length);
  if (mode === 'Passthrough') return { mode, certificates: [], rejected, unresolved: undefined };
  const reasons = { kind: 'InvalidCertificateRef', object: 'InvalidCertificateRef' };
  const certificates: KeyPair[] = [];
  let unresolved: Problem | undefined;
  for (const reference of certificateRefs) {
    const found = references.certificate(owner, reference, reasons);
    if ('pair' in found) certificates.push(found.pair);
    else unresolved ??= found;
  }
  return { mode, certificates, rejected, unresolved };
}

/** Options are of implementations; ours has none, and to pass over one could weaken what was asked for. */
function unsupportedTls(
  protocol: string,
  mode: string,
  options: readonly string[],
  certificates: number,
): Problem | undefined {
  const unsupported = (message: string): Problem => ({ reason: 'UnsupportedValue', message });
  if (mode !== 'Terminate' && (mode !== 'Passthrough' || protocol === 'HTTPS')) {
    return unsupported(`tls.mode ${mode} is not supported for ${protocol}`);
  }
  if (options.length > 0) return unsupported(`tls.options are not supported: ${options.join(', ')}`);
  return mode === 'Terminate' && certificates === 0
    ? unsupported('tls.certificateRefs names no certificate')
    : undefined;
}

interface Clients {
  readonly validation: ClientValidation | undefined;
  readonly rejected: Problem | undefined;
  readonly unresolved: Problem | undefined;
}

/** How clients of HTTPS show certificates: by port, else by the Gateway's default. */
class FrontendValidation {
  readonly #gateway: Gateway;
  readonly #references: References;
  readonly #known = new Map<number, Clients>();

  constructor(gateway: Gateway, references: References) {
    this.#gateway = gateway;
    this.#references = references;
  }

  ofPort(port: number): Clients {
    const known = this.#known.get(port) ?? this.#read(port);
    this.#known.set(port, known);
    return known;
  }

  #read(port: number): Clients {
    const { frontend } = this.#gateway.spec.tls ?? {};
    const { validation } =
      frontend?.perPort?.find((one) => one.port === port)?.tls ?? frontend?.default ?? {};
    if (validation === undefined)
      return { validation: undefined, rejected: undefined, unresolved: undefined };
    const { mode = 'AllowValidOnly', caCertificateRefs } = validation;
    const from = { kind: 'Gateway', namespace: this.#gateway.metadata.namespace ?? '' };
    const reasons = { kind: 'InvalidCACertificateKind', object: 'InvalidCACertificateRef' };
    const authorities: string[] = [];
    let unresolved: Problem | undefined;
    for (const reference of caCertificateRefs) {
      const found = this.#references.authority(from, reference, reasons);
      if ('pem' in found) authorities.push(found.pem);
      else unresolved ??= found;
    }
    if (mode !== 'AllowValidOnly' && mode !== 'AllowInsecureFallback') {
      const message = `Mode ${mode} of the validation of clients is not supported`;
      return { validation: undefined, rejected: { reason: 'UnsupportedValue', message }, unresolved };
    }
    if (authorities.length === 0) {
      const message = 'No certificate of an authority validates clients';
      return { validation: undefined, rejected: { reason: 'NoValidCACertificate', message }, unresolved };
    }
    return { validation: { ca: authorities.join('\n'), mode }, rejected: undefined, unresolved };
  }
}

/** Who may attach, by namespace. */
export interface AllowedNamespaces {
  readonly problem: Problem | undefined;
  readonly allows: (namespace: string) => boolean;
}

/**
 * Reads from which namespaces Routes or ListenerSets may attach.
 *
 * @param usual the default of `from`.
 * @param own the namespace of the listener or Gateway.
 */
export function readNamespaces(
  namespaces: RouteNamespaces | undefined,
  usual: 'Same' | 'None',
  own: string,
  references: References,
): AllowedNamespaces {
  const { from = usual, selector } = namespaces ?? {};
  if (from === 'All') return { problem: undefined, allows: () => true };
  if (from === 'Same') return { problem: undefined, allows: (namespace) => namespace === own };
  if (from === 'None') return { problem: undefined, allows: () => false };
  const none = (message: string): AllowedNamespaces => ({
    problem: { reason: 'UnsupportedValue', message },
    allows: () => false,
  });
  if (from !== 'Selector') return none(`namespaces.from ${from} is not supported`);
  let compiled: ParsedLabelSelector;
  try {
    compiled = compileLabelSelector(selector);
  } catch (error) {
    return none(`namespaces.selector: ${errorMessage(error)}`);
  }
  const known = new Map<string, boolean>();
  const allows = (namespace: string): boolean => {
    let isAllowed = known.get(namespace);
    if (isAllowed === undefined) {
      const labels = references.namespaceLabels(namespace);
      isAllowed = labels !== undefined && matchesLabels(compiled, labels);
      known.set(namespace, isAllowed);
    }
    return isAllowed;
  };
  return { problem: undefined, allows };
}

/** Marks listeners of a port of which one's hostname covers the other's: browsers may use one connection for both. */
function markOverlaps(listeners: readonly Draft[]): void {
  const byPort = new Map<number, Map<string, Draft>>();
  for (const listener of listeners) {
    if (listener.tls?.mode !== 'Terminate' || listener.rejected !== undefined) continue;
    const hosts = byPort.get(listener.spec.port) ?? new Map<string, Draft>();
    hosts.set(listener.hostname, listener);
    byPort.set(listener.spec.port, hosts);
  }
  for (const hosts of byPort.values()) {
    for (const listener of hosts.values()) {
      for (const wider of widerHostnames(listener.hostname)) {
        const other = hosts.get(wider);
        if (other === undefined) continue;
        other.isOverlapping = true;
        listener.isOverlapping = true;
      }
    }
  }
}
