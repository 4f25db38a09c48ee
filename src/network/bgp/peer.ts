import type { BGPRoute } from './route.ts';

/** A router to which a node announces routes, with the settings of the session. */
export interface Peer {
  /** Of the BGPPeer. */
  readonly name: string;
  /** IPv4 or IPv6, canonical; not link-local. */
  readonly address: string;
  /** 1 to 65,535; usually 179. */
  readonly port: number;
  readonly peerAs: number;
  readonly localAs: number;
  /** An IPv4 address: the BGP identifier of the node. */
  readonly routerId: string;
  /** The node's address that connections come from; undefined: the kernel chooses by its routes. */
  readonly sourceAddress: string | undefined;
  /** Seconds, 3 to 65,535; the peer may ask for less. */
  readonly holdTime: number;
  /** Seconds that the peer keeps routes for when the agent restarts; 0: not at all. At most 4,095. */
  readonly restartTime: number;
}

/** A route before the session exists, which sets the next hop. */
export type PeerRoute = Omit<BGPRoute, 'nextHop'>;
