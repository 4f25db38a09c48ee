import { isDeepStrictEqual } from 'node:util';
import type { Peer, PeerRoute } from '../../network/bgp/peer.ts';
import { BGPSession, type BGPSessionOptions, type BGPSessionStatus } from './bgp-session.ts';

/** The routes for one peer. */
export interface PeerRoutes {
  readonly peer: Peer;
  /** By `prefixKey`. */
  readonly routes: ReadonlyMap<string, PeerRoute>;
}

/** The BGP sessions of a node, one for each peer, independent of each other. */
export class BGPSpeaker {
  readonly #options: Omit<BGPSessionOptions, 'peer'>;
  readonly #sessions = new Map<string, BGPSession>();
  /** Sessions that are closing. */
  readonly #ending = new Set<Promise<void>>();

  constructor(options: Omit<BGPSessionOptions, 'peer'>) {
    this.#options = options;
  }

  /** Of each peer, in the order of their names. */
  get statuses(): readonly BGPSessionStatus[] {
    return [...this.#sessions.values()]
      .map((session) => session.status)
      .toSorted((a, b) => (a.peer < b.peer ? -1 : 1));
  }

  /** Announces routes to peers; ends the sessions with others. A peer whose settings have changed gets a new session. */
  sync(wanted: readonly PeerRoutes[]): void {
    const peers = new Map(wanted.map(({ peer }) => [peer.name, peer]));
    for (const [name, session] of this.#sessions) {
      const peer = peers.get(name);
      if (isDeepStrictEqual(peer, session.peer)) continue;
      this.#sessions.delete(name);
      this.#end(session.stop(peer === undefined ? 'the BGPPeer is gone' : 'the BGPPeer has changed'));
    }
    for (const { peer, routes } of wanted) {
      const session = this.#sessions.get(peer.name);
      if (session !== undefined) {
        session.announce(routes);
        continue;
      }
      const added = new BGPSession({ ...this.#options, peer });
      this.#sessions.set(peer.name, added);
      added.announce(routes);
      added.start();
    }
  }

  /**
   * Ends all sessions. Peers with graceful restart keep the routes for the restart time; others, and all if nothing
   * is announced, get a NOTIFICATION.
   *
   * @param text for their operators (RFC 9003).
   */
  async close(text: string): Promise<void> {
    for (const session of this.#sessions.values())
      this.#end(session.isKept ? session.leave() : session.stop(text));
    this.#sessions.clear();
    await Promise.all(this.#ending);
  }

  #end(ending: Promise<void>): void {
    const ended = ending.finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
  }
}
