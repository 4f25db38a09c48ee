/** A listener at an address and port of a Service. */
export interface Listener {
  /** Whether connections are open that came to its address. */
  readonly isInUse: boolean;
  /** Accepts nothing new. */
  close(): void;
}
