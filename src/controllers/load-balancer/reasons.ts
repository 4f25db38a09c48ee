/**
 * The one vocabulary that says how a Service's request for addresses stands: `reason` of its condition, of Events, of
 * log lines and of metrics. Users read one word in four places, so these words never change their meaning.
 */
export const reasons = [
  /** It has what it asked for. */
  'Assigned',
  /** No pool may serve it: none selects it, or the one that it names does not exist. */
  'NoMatchingPool',
  /** Every pool that may serve it is full; it gets the next address that becomes free, in order of creation. */
  'PoolExhausted',
  /** The requested address is in no pool that may serve it. */
  'AddressNotInPool',
  /** Another Service holds the requested address, and sharing was not asked for. */
  'AddressInUse',
  /** Sharing was asked for, and the rules of sharing forbid it. */
  'SharingRefused',
  /** Pools may serve it, but none has addresses of a family that it needs. */
  'FamilyUnavailable',
  /** The requested address is reserved for another Service. */
  'ReservedForOther',
  /** The requested address was another Service's a moment ago, and its pool's reuseDelay is not over. */
  'Quarantined',
  /** What the Service asks for cannot be understood or contradicts itself. */
  'InvalidRequest',
] as const;

export type Reason = (typeof reasons)[number];

/** Event: an address was taken back. */
export const releasedEvent = 'Released';

/** Event: somebody else takes our addresses out of a status again and again. */
export const overwrittenEvent = 'Overwritten';
