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
  // An endpoint was asked itself, and refused itself.
  const isDirect = endpoints.length === 1 && stages.every(({ verdict }) => verdict === 'pass');
  const refused = direct.length > 0 ? direct.every((each) => each === 'refused') : isDirect;
  if (outcome === 'refused' && refused) return differs('target port', 'nothing listens there');
  const does = outcome === 'refused' ? 'refuses' : 'drops';
  return differs(undefined, `something ${does} it that these objects do not show`);
}
