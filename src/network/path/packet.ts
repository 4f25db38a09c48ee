import type { StageName } from './stages.ts';
import type { Trace } from './trace.ts';

/** The result of a connection that was really opened. */
export type PacketOutcome =
  | 'connected'
  /** A reset or an ICMP message came back. */
  | 'refused'
  /** Nothing came back. */
  | 'dropped';

/** A plan beside a real packet. */
export interface PacketVerdict {
  readonly outcome: PacketOutcome;
  /** Undefined: the plan does not decide. */
  readonly agrees: boolean | undefined;
  /** The stage at which the two part; undefined where they agree, or where that is not known. */
  readonly differsAt: StageName | undefined;
  /** A sentence. */
  readonly message: string;
}

const outcomes: Readonly<Record<PacketOutcome, string>> = {
  connected: 'a real connection was opened',
  refused: 'a real connection was refused',
  dropped: 'a real connection got no answer',
};

/**
 * Compares a plan with the result of a real connection.
 *
 * @param direct the results of connections to the endpoints themselves, past the Service; empty: not tried.
 */
export function comparePacket(
  { reachable, stages, endpoints }: Trace,
  outcome: PacketOutcome,
  direct: readonly PacketOutcome[] = [],
): PacketVerdict {
  const said = outcomes[outcome];
  if (reachable === undefined) {
    return {
      outcome,
      agrees: undefined,
      differsAt: undefined,
      message: `${said}; objects alone do not tell`,
    };
  }
  if (reachable === (outcome === 'connected')) {
    return { outcome, agrees: true, differsAt: undefined, message: `${said}, as planned` };
  }
  const differs = (differsAt: StageName | undefined, why: string): PacketVerdict => ({
    ...{ outcome, agrees: false, differsAt, message: `${said}, against the plan: ${why}` },
  });
  if (outcome === 'connected') {
    const denying = [...stages, ...endpoints.flatMap((endpoint) => endpoint.stages)].find(
      ({ verdict }) => verdict === 'deny',
    );
    return differs(denying?.stage, `${denying?.object ?? 'what denies it there'} is not enforced`);
  }
  if (direct.includes('connected')) {
    return differs(
      'service',
      'the endpoints answer when they are asked themselves: the Service is not translated',
    );
  }
  if (outcome === 'refused') return differs('target port', 'nothing listens there');
  return differs(undefined, 'something drops it that these objects do not show');
}
