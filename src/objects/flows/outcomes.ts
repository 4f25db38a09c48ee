/** What became of a connection or of a question. */
export const outcomes = [
  /** An answer came. */
  'connected',
  /** The destination, or a rule before it, said no. */
  'refused',
  /** A rule dropped its packets. */
  'dropped',
  /** No answer is known. */
  'opened',
  /** Of a question to DNS: there is no such name. */
  'NXDOMAIN',
] as const;

export type Outcome = (typeof outcomes)[number];

/** In the order in which one wants to see them. */
export const worstFirst: readonly Outcome[] = ['dropped', 'refused', 'NXDOMAIN', 'opened', 'connected'];
