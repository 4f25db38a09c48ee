import { compileLabelSelector, matchesLabels } from '../../objects/selectors/labels.ts';
import { isRecord, isStringList, recordAt, textAt } from '../../objects/json.ts';
import type { KubeObject, LabelSelector } from '../../objects/meta.ts';
import type {
  AddressPoolAnnounce,
  AddressPoolBGP,
  AddressPoolLayer2,
} from '../../objects/types/servicenet.ts';
import { parseCommunity, parseLargeCommunity } from '../../network/bgp/route.ts';
import {
  noteOthers,
  objectsAt,
  selectorProblem,
  selectorsAt,
  asPeers,
  type ForeignPeer,
  type ImportedPeers,
} from './imported.ts';

/** MetalLB's kinds that configure announcing: L2Advertisement, BGPAdvertisement, BGPPeer, Community. */

/** The objects that configure announcing. */
export interface MetalLBAnnouncing {
  readonly l2Advertisements: readonly KubeObject[];
  readonly bgpAdvertisements: readonly KubeObject[];
  readonly bgpPeers: readonly KubeObject[];
  readonly communities: readonly KubeObject[];
}

const knownOfPeer = [
  ...['myASN', 'peerASN', 'peerAddress', 'peerPort', 'sourceAddress', 'routerID', 'holdTime'],
  ...['nodeSelectors', 'enableGracefulRestart', 'password', 'passwordSecret', 'bfdProfile'],
  // Sessions may have hops between, and offer both families.
  ...['ebgpMultiHop', 'dualStackAddressFamily', 'keepaliveTime', 'connectTime', 'disableMP'],
];

/** Fields without a counterpart that have an effect, and what holds instead. */
const unsayableOfPeer: Readonly<Record<string, string>> = {
  keepaliveTime: 'keepalives are sent each third of the hold time',
  connectTime: 'a lost session is tried again after 1 to 30 s',
  disableMP: 'sessions always offer both families, which a router that needs disableMP may refuse',
};

/** BGPPeers (`metallb.io/v1beta2`). */
export function importPeers(objects: readonly KubeObject[], notes: string[]): ImportedPeers {
  return asPeers(
    objects.map(({ metadata, ...rest }) => foreignPeer(metadata.name ?? '', recordAt(rest, 'spec'), notes)),
    notes,
  );
}

/** @param spec with the members of `metallb.io/v1beta2`. */
function foreignPeer(name: string, spec: Readonly<Record<string, unknown>>, notes: string[]): ForeignPeer {
  noteOthers(name, spec, knownOfPeer, notes);
  if (textAt(spec, 'password') !== '' || textAt(spec, 'passwordSecret', 'name') !== '') {
    notes.push(
      `${name}: TCPMD5NotSupported: the password is not imported; see docs/bgp.md for what protects sessions`,
    );
  }
  if (textAt(spec, 'bfdProfile') !== '') {
    notes.push(
      `${name}: BFDNotSupported: bfdProfile is not imported; holdTime: 3s notices a dead router in 3 to 3.6 s`,
    );
  }
  for (const [field, instead] of Object.entries(unsayableOfPeer)) {
    const value = spec[field];
    if (value !== undefined && value !== '' && value !== false) {
      notes.push(`${name}: ${field} not imported: ${instead}`);
    }
  }
  const { myASN, peerASN, peerAddress, peerPort, sourceAddress, routerID, holdTime } = spec;
  return {
    ...{ name, myASN, peerASN, peerAddress, peerPort, sourceAddress, routerID, holdTime },
    nodeSelector: oneSelector(name, selectorsAt(spec['nodeSelectors']), notes),
    // Off by default there, and on here.
    gracefulRestart: spec['enableGracefulRestart'] === true,
  };
}

/** How MetalLB announces each of its pools. */
export class Advertisements {
  readonly #announcing: MetalLBAnnouncing;
  readonly #peers: ImportedPeers['names'];
  readonly #notes: string[];
  readonly #communities: ReadonlyMap<string, string>;

  constructor(announcing: MetalLBAnnouncing, peers: ImportedPeers['names'], notes: string[]) {
    this.#announcing = announcing;
    this.#peers = peers;
    this.#notes = notes;
    this.#communities = communityNames(announcing.communities);
  }

  /** An empty result has the meaning that it has in a pool: the addresses are not announced. */
  of(pool: KubeObject): AddressPoolAnnounce {
    const name = pool.metadata.name ?? '';
    const layer2 = this.#first(name, 'L2Advertisement', this.#announcing.l2Advertisements, pool);
    const bgp = this.#first(name, 'BGPAdvertisement', this.#announcing.bgpAdvertisements, pool);
    const announce = {
      ...(layer2 === undefined ? {} : withMember('layer2', layer2Of(layer2.name, layer2.spec, this.#notes))),
      ...(bgp === undefined
        ? {}
        : withMember('bgp', bgpOf(bgp.name, bgp.spec, this.#communities, this.#peers, this.#notes))),
    };
    if (Object.keys(announce).length === 0) {
      this.#notes.push(
        `${name}: MetalLB does not announce it, or not in a way that can be imported: announce is {}`,
      );
    }
    return announce;
  }

  #first(
    pool: string,
    kind: string,
    objects: readonly KubeObject[],
    object: KubeObject,
  ): { name: string; spec: Readonly<Record<string, unknown>> } | undefined {
    const all = objects
      .map(({ metadata, ...rest }) => ({ name: metadata.name ?? '', spec: recordAt(rest, 'spec') }))
      .filter(({ spec }) => isFor(spec, object));
    const [first, ...others] = all;
    if (first !== undefined && others.length > 0) {
      const names = others.map(({ name }) => name).join(', ');
      this.#notes.push(`${pool}: has several ${kind}s; an AddressPool has one, so ${names} not imported`);
    }
    return first;
  }
}

function withMember<K extends string, V>(key: K, value: V | undefined): Partial<Record<K, V>> {
  const made: Partial<Record<K, V>> = {};
  if (value !== undefined) made[key] = value;
  return made;
}

/** Whether an advertisement is for a pool; one that names and selects none is for all. */
function isFor(spec: Readonly<Record<string, unknown>>, { metadata }: KubeObject): boolean {
  const names = isStringList(spec['ipAddressPools']) ? spec['ipAddressPools'] : [];
  const selectors = selectorsAt(spec['ipAddressPoolSelectors']);
  if (names.length === 0 && selectors.length === 0) return true;
  return (
    names.includes(metadata.name ?? '') ||
    selectors.some(
      (selector) =>
        selectorProblem(selector) === undefined &&
        matchesLabels(compileLabelSelector(selector), metadata.labels),
    )
  );
}

/** Most entries of lists in `spec.announce` (deploy/crds). */
const maxInterfaces = 16;
const maxListed = 64;

/** `spec.announce.layer2` of an L2Advertisement; undefined: its selector cannot be read. */
function layer2Of(
  name: string,
  spec: Readonly<Record<string, unknown>>,
  notes: string[],
): AddressPoolLayer2 | undefined {
  noteOthers(name, spec, ['ipAddressPools', 'ipAddressPoolSelectors', 'nodeSelectors', 'interfaces'], notes);
  const listed = isStringList(spec['interfaces']) ? [...new Set(spec['interfaces'])] : [];
  const interfaces = listed.filter((text) => /^[^/:\s]{1,15}$/.test(text)).slice(0, maxInterfaces);
  if (interfaces.length < listed.length) {
    notes.push(`${name}: only the interfaces ${interfaces.join(', ') || '(none)'} were imported`);
    if (interfaces.length === 0) return undefined;
  }
  const selected = nodesOf(name, spec, notes);
  return selected === undefined
    ? undefined
    : { ...(interfaces.length === 0 ? {} : { interfaces }), ...selected };
}

/** `spec.announce.bgp` of a BGPAdvertisement; undefined: its selector cannot be read, or it is for no peer that was imported. */
export function bgpOf(
  name: string,
  spec: Readonly<Record<string, unknown>>,
  aliases: ReadonlyMap<string, string>,
  peerNames: ReadonlyMap<string, string>,
  notes: string[],
): AddressPoolBGP | undefined {
  noteOthers(
    name,
    spec,
    [
      ...['ipAddressPools', 'ipAddressPoolSelectors', 'nodeSelectors', 'peers', 'communities'],
      ...['localPref', 'aggregationLength', 'aggregationLengthV6'],
    ],
    notes,
  );
  const selected = nodesOf(name, spec, notes);
  if (selected === undefined) return undefined;
  const named = isStringList(spec['peers']) ? spec['peers'] : [];
  const peers = [...new Set(named.flatMap((peer) => peerNames.get(peer) ?? []))].slice(0, maxListed);
  if (named.length > 0 && peers.length === 0) {
    notes.push(`${name}: not imported: none of its peers was`);
    return undefined;
  }
  const communities = new Set<string>();
  for (const text of isStringList(spec['communities']) ? spec['communities'] : []) {
    const value = (aliases.get(text) ?? text).replace(/^large:/, '');
    const isOne = parseCommunity(value) !== undefined || parseLargeCommunity(value) !== undefined;
    if (isOne && communities.size < maxListed) communities.add(value);
    else notes.push(`${name}: the community ${JSON.stringify(text)} not imported`);
  }
  const { localPref, aggregationLength, aggregationLengthV6 } = spec;
  return {
    ...(peers.length === 0 ? {} : { peers }),
    ...selected,
    ...(communities.size === 0 ? {} : { communities: [...communities] }),
    ...(isUpTo(localPref, 0xffff_ffff) ? { localPreference: localPref } : {}),
    ...(isUpTo(aggregationLength, 31) ? { aggregationLength } : {}),
    ...(isUpTo(aggregationLengthV6, 127) ? { aggregationLengthV6 } : {}),
  };
}

/** A whole number from 1 on. */
function isUpTo(value: unknown, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most;
}

/** Undefined: its selector cannot be read, and without it all nodes would announce. */
function nodesOf(
  name: string,
  spec: Readonly<Record<string, unknown>>,
  notes: string[],
): { nodeSelector?: LabelSelector } | undefined {
  const nodeSelector = oneSelector(name, selectorsAt(spec['nodeSelectors']), notes);
  if (nodeSelector === undefined) return {};
  const problem = selectorProblem(nodeSelector);
  if (problem === undefined) return { nodeSelector };
  notes.push(`${name}: not imported: ${problem}`);
  return undefined;
}

/** One selector for several of which one must match: where all ask for values of one label, they become one list. */
function oneSelector(
  name: string,
  selectors: readonly LabelSelector[],
  notes: string[],
): LabelSelector | undefined {
  const [first, ...others] = selectors;
  if (first === undefined || others.length === 0) return first;
  const pairs = selectors.flatMap(({ matchLabels, matchExpressions }) => {
    const entries = Object.entries(matchLabels ?? {});
    return entries.length === 1 && (matchExpressions ?? []).length === 0 ? entries : [];
  });
  const [key] = pairs[0] ?? [];
  if (key !== undefined && pairs.length === selectors.length && pairs.every(([each]) => each === key)) {
    return { matchExpressions: [{ key, operator: 'In', values: pairs.map(([, value]) => value) }] };
  }
  notes.push(`${name}: selects nodes by any of ${selectors.length} selectors; only the first was taken`);
  return first;
}

/** The names that Community objects give to communities. */
function communityNames(objects: readonly KubeObject[]): ReadonlyMap<string, string> {
  return new Map(
    objects.flatMap(({ metadata: _, ...rest }) =>
      objectsAt(recordAt(rest, 'spec')['communities']).flatMap(({ name, value }) =>
        typeof name === 'string' && typeof value === 'string' ? [[name, value] as const] : [],
      ),
    ),
  );
}

/** `peers` and `bgp-communities` of the ConfigMap of MetalLB before 0.13, with the names of its later kinds. */
export function announcingOfConfig(
  config: Readonly<Record<string, unknown>>,
  notes: string[],
): { readonly peers: ImportedPeers; readonly communities: ReadonlyMap<string, string> } {
  const peers = objectsAt(config['peers']).map((peer, index) => {
    const { name, 'node-selectors': nodeSelectors, ...others } = peer;
    const spec = Object.fromEntries(Object.entries(others).map(([key, value]) => [laterName(key), value]));
    const selectors = objectsAt(nodeSelectors).map(
      ({ 'match-labels': matchLabels, 'match-expressions': matchExpressions }) => ({
        ...(matchLabels === undefined ? {} : { matchLabels }),
        ...(matchExpressions === undefined ? {} : { matchExpressions }),
      }),
    );
    const known = selectors.length === 0 ? {} : { nodeSelectors: selectors };
    const text = typeof name === 'string' && name !== '' ? name : `peer-${index + 1}`;
    return foreignPeer(text, { ...spec, ...known }, notes);
  });
  const aliases = isRecord(config['bgp-communities']) ? config['bgp-communities'] : {};
  return {
    peers: asPeers(peers, notes),
    communities: new Map(
      Object.entries(aliases).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
    ),
  };
}

const laterNames: Readonly<Record<string, string>> = {
  ...{ 'my-asn': 'myASN', 'peer-asn': 'peerASN', 'peer-address': 'peerAddress', 'peer-port': 'peerPort' },
  ...{ 'source-address': 'sourceAddress', 'router-id': 'routerID', 'hold-time': 'holdTime' },
  ...{ 'ebgp-multihop': 'ebgpMultiHop', 'aggregation-length': 'aggregationLength', localpref: 'localPref' },
  'aggregation-length-v6': 'aggregationLengthV6',
};

/** The name in `metallb.io` of a member of the ConfigMap. */
export function laterName(key: string): string {
  return laterNames[key] ?? key;
}
