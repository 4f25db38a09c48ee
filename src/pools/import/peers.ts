import { parseStrictAddress } from '../../objects/address.ts';
import type { LabelSelector } from '../../objects/meta.ts';
import type { BGPPeer, BGPPeerSpec } from '../../objects/types/servicenet.ts';
import { parseDuration } from '../../objects/time.ts';
import { selectorProblem } from './imported.ts';
import { freeName } from './imported.ts';

/** A router in the configuration of another load balancer; values are not checked. */
export interface ForeignPeer {
  readonly name: string;
  readonly myASN: unknown;
  readonly peerASN: unknown;
  readonly peerAddress: unknown;
  readonly peerPort?: unknown;
  readonly sourceAddress?: unknown;
  readonly routerID?: unknown;
  /** A duration in Go's syntax. */
  readonly holdTime?: unknown;
  readonly nodeSelector?: LabelSelector | undefined;
  readonly gracefulRestart?: unknown;
}

/** BGPPeers, and the names that they have got. */
export interface ImportedPeers {
  readonly peers: readonly BGPPeer[];
  /** By their foreign names, of those that were imported. */
  readonly names: ReadonlyMap<string, string>;
}

/** BGPPeers with valid, unique names; what the API would refuse is left out with a note. */
export function asPeers(foreign: readonly ForeignPeer[], notes: string[]): ImportedPeers {
  const names = new Map<string, string>();
  const taken = new Set<string>();
  const peers = foreign.flatMap((peer): BGPPeer[] => {
    const spec = specOf(peer, notes);
    if (typeof spec === 'string') {
      notes.push(`${peer.name}: not imported: ${spec}`);
      return [];
    }
    const name = freeName(peer.name, taken, 'peer');
    taken.add(name);
    names.set(peer.name, name);
    if (name !== peer.name) notes.push(`${JSON.stringify(peer.name)} was renamed to ${name}`);
    return [{ apiVersion: 'servicenet.dev/v1alpha1', kind: 'BGPPeer', metadata: { name }, spec }];
  });
  return { peers, names };
}

/** Text: why it cannot be a BGPPeer. */
function specOf(peer: ForeignPeer, notes: string[]): BGPPeerSpec | string {
  const { name, myASN, peerASN, nodeSelector, gracefulRestart } = peer;
  if (!isASN(myASN) || !isASN(peerASN)) return 'it has no AS numbers that a peer can have';
  const address = addressOf(peer.peerAddress);
  if (address === undefined) return 'its address is none of another machine';
  if (nodeSelector !== undefined) {
    const problem = selectorProblem(nodeSelector);
    if (problem !== undefined) return problem;
  }
  const source = addressOf(peer.sourceAddress);
  if (isGiven(peer.sourceAddress) && source?.family !== address.family)
    return 'its source address is none of the family of its address';
  const routerID = addressOf(peer.routerID);
  if (isGiven(peer.routerID) && routerID?.family !== 'IPv4')
    notes.push(`${name}: the router ID ${JSON.stringify(peer.routerID)} not imported: it is no IPv4 address`);
  const port = peer.peerPort;
  return {
    ...{ myASN, peerASN, peerAddress: address.canonical },
    ...(typeof port === 'number' && Number.isInteger(port) && port >= 1 && port <= 0xffff && port !== 179
      ? { peerPort: port }
      : {}),
    ...(source === undefined ? {} : { sourceAddress: source.canonical }),
    ...(routerID?.family === 'IPv4' ? { routerID: routerID.canonical } : {}),
    ...holdTimeOf(peer, notes),
    ...(typeof gracefulRestart === 'boolean' ? { gracefulRestart } : {}),
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
  };
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

/** 23456 and 65535 are reserved (RFC 6793, RFC 7300). */
function isASN(value: unknown): value is number {
  return (
    typeof value === 'number' &&
    Number.isInteger(value) &&
    value >= 1 &&
    value <= 0xffff_ffff &&
    value !== 23456 &&
    value !== 65535
  );
}

/** An address of a machine on a network; link-local ones would need an interface. */
function addressOf(value: unknown): ReturnType<typeof parseStrictAddress> {
  const parsed = typeof value === 'string' ? parseStrictAddress(value) : undefined;
  if (parsed === undefined || parsed.value === 0n) return undefined;
  const { family, value: bits } = parsed;
  const isLoopback = family === 'IPv4' ? bits >> 24n === 127n : bits === 1n;
  const isLinkLocal = family === 'IPv4' ? bits >> 16n === 0xa9fen : bits >> 118n === 0x3fan;
  return isLoopback || isLinkLocal ? undefined : parsed;
}

function holdTimeOf({ name, holdTime }: ForeignPeer, notes: string[]): Pick<BGPPeerSpec, 'holdTime'> {
  if (!isGiven(holdTime)) return {};
  const ms = typeof holdTime === 'string' ? parseDuration(holdTime) : undefined;
  const seconds = ms === undefined ? 0 : Math.round(ms / 1000);
  if (seconds >= 3 && seconds <= 0xffff) return { holdTime: `${seconds}s` };
  notes.push(`${name}: the hold time ${JSON.stringify(holdTime)} not imported: it is not from 3s to 65535s`);
  return {};
}
