import type { IPFamily } from '../../objects/address.ts';

/** Bytes of the longest message (RFC 4271 §4); the extension of RFC 8654 is not offered. */
export const maxMessageLength = 4096;

/** The 2-byte AS number of a speaker whose own does not fit (RFC 6793). */
export const asTrans = 23456;

/** A network, as NLRI name it. */
export interface Prefix {
  readonly family: IPFamily;
  /** Bits beyond the length are 0. */
  readonly network: bigint;
  /** 0 to 32 or 0 to 128. */
  readonly length: number;
}

export type BGPMessage = Open | UpdateMessage | Notification | Keepalive | RouteRefresh;

export interface Open {
  readonly type: 'open';
  /** 1 to 4,294,967,295: of the capability for 4-byte numbers where there is one (RFC 6793). */
  readonly as: number;
  /** Seconds; 0 or 3 to 65,535. */
  readonly holdSeconds: number;
  /** BGP identifier, as an IPv4 address. */
  readonly routerId: string;
  readonly capabilities: PeerCapabilities;
}

/** Capabilities that are understood (RFC 5492); others are left out. */
export interface PeerCapabilities {
  /** Of MP-BGP (RFC 4760), unicast only; undefined: not announced, which means IPv4. */
  readonly families: readonly IPFamily[] | undefined;
  /** RFC 2918. */
  readonly routeRefresh: boolean;
  /** RFC 6793. */
  readonly fourByteAs: boolean;
  /** RFC 4724; undefined: not announced. */
  readonly gracefulRestart: GracefulRestart | undefined;
}

export interface GracefulRestart {
  /** The R bit: this speaker has just started again, and waits for no End-of-RIB of a peer that has, too. */
  readonly restarting: boolean;
  /** Seconds that a peer keeps routes for; 0 to 4,095. */
  readonly restartSeconds: number;
  /** Families whose forwarding outlives the speaker, with the F bit: it did. */
  readonly families: readonly { readonly family: IPFamily; readonly forwarding: boolean }[];
}

/** The attributes of the routes of one UPDATE. */
export interface PathAttributes {
  readonly origin: 'IGP' | 'EGP' | 'INCOMPLETE';
  /** AS numbers of all segments in order; a set counts with its members. */
  readonly asPath: readonly number[];
  /** Canonical text. */
  readonly nextHop: string;
  /** 0 to 4,294,967,295; only between speakers of one AS. */
  readonly localPref?: number;
  /** RFC 1997, each 32 bits: AS × 65,536 and a value. */
  readonly communities: readonly number[];
  /** RFC 8092. */
  readonly largeCommunities: readonly LargeCommunity[];
}

export type LargeCommunity = readonly [globalAdministrator: number, localData1: number, localData2: number];

export interface UpdateMessage {
  readonly type: 'update';
  readonly withdrawn: readonly Prefix[];
  readonly announced: readonly Prefix[];
  /** Undefined where nothing is announced, or where they do not say what they must: RFC 7606 has such routes withdrawn. */
  readonly attributes: PathAttributes | undefined;
  /** The End-of-RIB marker of a family (RFC 4724 §2). */
  readonly endOfRib: IPFamily | undefined;
}

export interface Notification {
  readonly type: 'notification';
  readonly code: number;
  readonly subcode: number;
  readonly data: Uint8Array;
}

export interface Keepalive {
  readonly type: 'keepalive';
}

export interface RouteRefresh {
  readonly type: 'route-refresh';
  /** Undefined: a family that is not known, for which nothing is sent (RFC 2918 §4). */
  readonly family: IPFamily | undefined;
}

/** Codes of NOTIFICATION messages: RFC 4271 §4.5, RFC 6608, RFC 9687. */
export const errorCode = {
  messageHeader: 1,
  openMessage: 2,
  updateMessage: 3,
  holdTimerExpired: 4,
  finiteStateMachine: 5,
  cease: 6,
  routeRefresh: 7,
  sendHoldTimerExpired: 8,
} as const;

/** A NOTIFICATION (RFC 4271 §4.5). @param code of {@link errorCode}. @param data depends on the codes. */
export function notification(
  code: Notification['code'],
  subcode: number,
  data: Uint8Array = new Uint8Array(),
): Notification {
  return { type: 'notification', code, subcode, data };
}

/** A message of the peer violates the protocol: the session ends with this NOTIFICATION. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
  readonly notification: Notification;

  constructor(message: string, code: number, subcode: number, data: Uint8Array = new Uint8Array()) {
    super(message);
    this.notification = { type: 'notification', code, subcode, data };
  }
}

const names: Readonly<Record<number, readonly string[]>> = {
  1: ['Message Header Error', 'Connection Not Synchronized', 'Bad Message Length', 'Bad Message Type'],
  2: [
    'OPEN Message Error',
    'Unsupported Version Number',
    'Bad Peer AS',
    'Bad BGP Identifier',
    'Unsupported Optional Parameter',
    '',
    'Unacceptable Hold Time',
    'Unsupported Capability',
    '',
    '',
    '',
    'Role Mismatch',
  ],
  3: [
    'UPDATE Message Error',
    'Malformed Attribute List',
    'Unrecognized Well-known Attribute',
    'Missing Well-known Attribute',
    'Attribute Flags Error',
    'Attribute Length Error',
    'Invalid ORIGIN Attribute',
    '',
    'Invalid NEXT_HOP Attribute',
    'Optional Attribute Error',
    'Invalid Network Field',
    'Malformed AS_PATH',
  ],
  4: ['Hold Timer Expired'],
  5: [
    'Finite State Machine Error',
    'Unexpected Message in OpenSent',
    'Unexpected Message in OpenConfirm',
    'Unexpected Message in Established',
  ],
  6: [
    'Cease',
    'Maximum Number of Prefixes Reached',
    'Administrative Shutdown',
    'Peer De-configured',
    'Administrative Reset',
    'Connection Rejected',
    'Other Configuration Change',
    'Connection Collision Resolution',
    'Out of Resources',
    'Hard Reset',
    'BFD Down',
  ],
  7: ['ROUTE-REFRESH Message Error', 'Invalid Message Length'],
  8: ['Send Hold Timer Expired'],
};

/** A NOTIFICATION in the words of IANA's registry: `Cease: Administrative Shutdown: maintenance`. */
export function describeNotification({ code, subcode, data }: Notification): string {
  const [kind = `code ${code}`, ...kinds] = names[code] ?? [];
  const detail = subcode === 0 ? '' : kinds[subcode - 1];
  const words = detail === '' && subcode === 0 ? kind : `${kind}: ${detail || `subcode ${subcode}`}`;
  const text = shutdownCommunication(code, subcode, data);
  return text === '' ? words : `${words}: ${text}`;
}

/** The text of RFC 9003, without control characters: it comes from the peer, and goes into logs. */
function shutdownCommunication(code: number, subcode: number, data: Uint8Array): string {
  if (code !== errorCode.cease || (subcode !== 2 && subcode !== 4)) return '';
  const [length = 0] = data;
  return new TextDecoder()
    .decode(data.subarray(1, 1 + length))
    .replaceAll(/\p{Cc}/gu, ' ')
    .trim();
}
