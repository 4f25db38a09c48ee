import type { PoolAnnouncement } from '../../network/announcing/pool-announcement.ts';

/** An address that this node announces now, in one of the ways. */
export interface AddressToAnnounce {
  /** Canonical. */
  readonly address: string;
  /** Of its pool: the announcer reads the member of its own way, which is defined. */
  readonly announcement: PoolAnnouncement;
  /** Names of the interfaces to announce it on; empty for BGP. */
  readonly interfaces: readonly string[];
}

/**
 * One way to announce addresses of a node: layer 2, or BGP. Which addresses is planned outside
 * (`network/announcing`).
 */
export interface AddressAnnouncer {
  /**
   * Announces these addresses from now on, and no others. Never called twice at once; with the same addresses it sends
   * nothing. What cannot be announced is logged by its reason and tried again, here or with the next call.
   *
   * @throws {Error} where no address could be announced: the caller calls again.
   */
  announce(addresses: readonly AddressToAnnounce[]): Promise<void>;
  /** Canonical: those that are announced now. */
  readonly announced: ReadonlySet<string>;
  /**
   * Ends in an orderly way. The addresses of the last {@link announce} stay without the process for as long as they
   * can, so that the next one finds them; `announce([])` before withdraws them.
   */
  close(): Promise<void>;
}
