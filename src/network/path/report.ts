import type { PacketVerdict } from './packet.ts';
import type { Stage } from './stages.ts';
import type { Trace } from './trace.ts';
import type { Hop } from './way.ts';

/** A plan beside the result of a real connection. */
export interface CheckedPacket extends PacketVerdict {
  /** That the connection took. */
  readonly milliseconds: number;
}

/** The plan for one address of the destination. */
export interface TracedDestination extends Trace {
  readonly destination: string;
  /** The places of the way to each endpoint, or of the one that ends before. */
  readonly hops: readonly (readonly Hop[])[];
  /** With `--check`. */
  readonly packet?: CheckedPacket;
}

/** The result of one connection, as `servicenet trace -o json` prints it. */
export interface TraceReport {
  readonly proxyOptions: readonly string[];
  /** Undefined: the objects do not decide it. */
  readonly reachable: boolean | undefined;
  readonly stages: readonly Stage[];
  /** One for each address of the destination. */
  readonly traces: readonly TracedDestination[];
}
