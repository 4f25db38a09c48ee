import type { ResourceClient } from '../../client/resource-client.ts';
import type { BGPPeer, BGPPeerSession } from '../../objects/types/servicenet.ts';

/** The longest name that a field manager may have (apimachinery `validation.FieldManagerMaxLength`). */
const maxManagerLength = 128;

/**
 * Writes the session of a node into `status.sessions` of its BGPPeers, each node its own entry by server-side apply. What is
 * already there is not written again.
 */
export class BGPPeerStatusWriter {
  readonly #client: ResourceClient<BGPPeer>;
  readonly #node: string;
  /** The last written status, by the name of the peer: the cache may not have it yet. */
  readonly #written = new Map<string, string>();

  constructor(client: ResourceClient<BGPPeer>, node: string) {
    this.#client = client;
    this.#node = node;
  }

  /**
   * @param session undefined: the node has none with this peer.
   * @throws what the API server answers.
   */
  async write({ metadata, status }: BGPPeer, session: BGPPeerSession | undefined): Promise<void> {
    const { name = '', uid = '' } = metadata;
    const key = `${name} ${uid}`;
    const own = status?.sessions?.find(({ node }) => node === this.#node);
    const text = JSON.stringify(session ?? null);
    if ((this.#written.get(key) ?? JSON.stringify(sorted(own) ?? null)) === text) return;
    await this.#client.applyPatch(
      { metadata: { name }, status: { sessions: session === undefined ? [] : [session] } },
      {
        subresource: 'status',
        fieldManager: `servicenet-node/${this.#node}`.slice(0, maxManagerLength),
        force: true,
      },
    );
    this.#written.set(key, text);
  }

  /** Forgets peers that are gone. */
  retain(peers: Iterable<BGPPeer>): void {
    const keys = new Set([...peers].map(({ metadata }) => `${metadata.name ?? ''} ${metadata.uid ?? ''}`));
    for (const key of this.#written.keys()) if (!keys.has(key)) this.#written.delete(key);
  }
}

/** The members in the order of {@link BGPPeerSession}. */
function sorted(session: BGPPeerSession | undefined): BGPPeerSession | undefined {
  if (session === undefined) return undefined;
  const { node, reason, message, since, warnings } = session;
  return { node, reason, message, since, ...(warnings === undefined ? {} : { warnings }) };
}
