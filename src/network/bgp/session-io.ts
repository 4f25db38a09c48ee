import type { IPFamily } from '../../objects/address.ts';
import type { Open } from './message.ts';

/** States of RFC 4271 §8.2.2. `active` is absent: a speaker that does not listen has no use for it. */
export type SessionState = 'idle' | 'connect' | 'openSent' | 'openConfirm' | 'established';

/** Why a session is where it is; the reason of statuses, Events, logs and metrics. */
export type SessionReason =
  | 'Established'
  /** The peer's machine answers that nothing listens on its port 179, or that it takes no connection from here. */
  | 'ConnectionRefused'
  /** No answer from the peer's address, or no route to it. */
  | 'PeerUnreachable'
  /** The node lacks the source address of connections. */
  | 'NoSourceAddress'
  /** The peer closed the connection without a NOTIFICATION. */
  | 'ConnectionClosed'
  /** The peer ended the session with a NOTIFICATION. */
  | 'NotificationReceived'
  /** What the peer sent is no BGP, or not what the state machine expects. */
  | 'InvalidMessage'
  /** Nothing came from the peer for the hold time. */
  | 'HoldTimerExpired'
  /** The peer took nothing for twice the hold time (RFC 9687). */
  | 'SendHoldTimerExpired'
  /** The peer is of another AS than configured. */
  | 'WrongPeerAS'
  /** The peer is of our AS and has our BGP identifier. */
  | 'SameRouterID'
  /** The peer takes neither IPv4 nor IPv6 unicast routes. */
  | 'NoCommonFamily'
  /** This speaker ended the session. */
  | 'Stopped';

/** What a session is given. */
export interface SessionOptions {
  readonly localAs: number;
  /** An IPv4 address; not 0.0.0.0. */
  readonly routerId: string;
  /** 1 to 4,294,967,295. */
  readonly peerAs: number;
  /** Seconds: what is offered; 3 to 65,535. The smaller of both counts. */
  readonly holdSeconds: number;
  /** Families that are announced. */
  readonly families: readonly IPFamily[];
  /**
   * Seconds that the peer is to keep routes for when the connection of this speaker breaks (RFC 4724); 0: not at all. Only for
   * a speaker whose forwarding outlives it.
   */
  readonly restartSeconds: number;
  /** Whether this speaker has just started again, and forwarding went on meanwhile. */
  readonly restarting: boolean;
  /** 0 to less than 1. */
  readonly random: () => number;
}

/** Actions for the owner of the socket, in order. */
export type SessionAction =
  /** Open a TCP connection to the peer's port 179. A former one is closed. */
  | { readonly do: 'connect' }
  | { readonly do: 'send'; readonly bytes: Uint8Array }
  /** Close the connection once all that was sent is out; soon in any case. */
  | { readonly do: 'close' }
  /** For the log and the metrics. */
  | {
      readonly do: 'report';
      readonly state: SessionState;
      readonly reason: SessionReason;
      readonly why: string;
    };

/** The OPEN that a session offers. @param restarting whether it is the first session after a start during which forwarding went on: the R bit. */
export function openOf(
  { localAs, routerId, holdSeconds, families, restartSeconds }: SessionOptions,
  restarting: boolean,
): Open {
  const preserved = families.map((family) => ({ family, forwarding: true }));
  return {
    ...{ type: 'open', as: localAs, holdSeconds, routerId },
    capabilities: {
      ...{ families, routeRefresh: true, fourByteAs: true },
      gracefulRestart: restartSeconds === 0 ? undefined : { restarting, restartSeconds, families: preserved },
    },
  };
}
