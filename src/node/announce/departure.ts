import type { KeptAddresses } from '../../network/announcing/agent-report.ts';
import { type Announcer, planAnnouncement } from '../../network/announcing/announcement-plan.ts';
import { takeOverAfterMs } from '../../network/announcing/fence.ts';
import { secondsLeft } from '../../network/announcing/restart-grace.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { Alarm } from './alarm.ts';
import type { AnnouncementView } from './announcement-view.ts';
import type { Layer2Announcer } from './layer2/layer2-announcer.ts';
import type { LeaseKeeper } from './lease-keeper.ts';

/** The parts of an agent that {@link depart} uses. */
export interface DepartureOptions {
  readonly context: Pick<ControllerContext, 'clock' | 'log'>;
  readonly nodeName: string;
  /** Seconds that addresses stay which no other node can take over. */
  readonly restartGrace: number;
  readonly view: AnnouncementView;
  readonly leases: LeaseKeeper;
  readonly layer2: Layer2Announcer;
  /** Without this node. */
  readonly announcers: () => readonly Announcer[];
  /** Rings when there may be something new. */
  readonly changes: Alarm;
  /** Called before the Lease is given back: it is to say what stays. */
  readonly say: (left: KeptAddresses | undefined) => void;
}

/** Milliseconds that an orderly end waits until others have taken over. */
const leaveWithinMs = 5000;

/** Milliseconds between two looks at what others announce. */
const lookEveryMs = 50;

/**
 * The orderly end of an agent: gives the Lease back, so that others take over at once, and waits for them.
 * Addresses that no other node can announce stay for `restartGrace`, which the Lease says: an agent that has not
 * seen it cannot begin to announce them.
 */
export async function depart(options: DepartureOptions): Promise<void> {
  const { context, restartGrace, leases, layer2, changes } = options;
  const { clock, log } = context;
  leases.stopRenewing();
  const started = clock.monotonic();
  const end = started + leaveWithinMs;
  // Longer than all of this takes. Others that can give the Lease back do so after less.
  const stay = async (): Promise<void> =>
    layer2.leave(layer2.announced, secondsLeft(leaveWithinMs / 1000 + 1, started, clock.monotonic()));
  if (leases.isAlone) await stay();
  let kept: readonly string[] = [];
  /** Before and after the last write of the Lease. */
  let saidFrom = started;
  let saidAt: number | undefined;
  for (;;) {
    const { orphans, isTaken } = succession(options, kept);
    const keeps = restartGrace > 0 ? orphans : [];
    if (saidAt === undefined || keeps.length > kept.length) {
      kept = keeps;
      saidFrom = clock.monotonic();
      options.say(kept.length === 0 ? undefined : { addresses: kept, seconds: restartGrace });
      try {
        if (layer2.announced.size > 0) await leases.giveBack();
      } catch (error) {
        log.warn({ err: error }, 'cannot give the Lease back');
        // As long as the Lease is held, only agents that it names can take over.
        if (!leases.isAlone) kept = [];
        break;
      }
      if (saidAt === undefined && !leases.isAlone) await stay();
      saidAt = clock.monotonic();
    }
    const now = clock.monotonic();
    const isHeard = kept.length === 0 || leases.isAlone || now >= saidAt + takeOverAfterMs;
    if (now >= end && !isHeard) kept = [];
    if (now >= end || (isTaken && isHeard)) break;
    await changes.sleep(lookEveryMs);
  }
  const left = kept.filter((address) => !isWithAnother(options, address));
  const seconds = secondsLeft(restartGrace, saidFrom, clock.monotonic());
  await layer2.leave(new Set(left), seconds);
  if (left.length > 0) {
    log.info(
      { addresses: left.length, seconds },
      'no other node can announce these addresses: they stay for a restart',
    );
  }
}

/**
 * What happens to the addresses of this node: which stay because no other node takes them, and whether others have
 * the rest.
 *
 * @param kept the addresses that stay by the Lease: no other agent begins to announce them.
 */
function succession(
  options: DepartureOptions,
  kept: readonly string[],
): { readonly orphans: readonly string[]; readonly isTaken: boolean } {
  const { view, layer2 } = options;
  const announcers = options.announcers();
  const { announced } = layer2;
  const orphans: string[] = [];
  let isTaken = true;
  for (const assigned of view.addresses.values()) {
    const { address } = assigned;
    if (!announced.has(address) || isWithAnother(options, address)) continue;
    const isOrphan = kept.includes(address) || planAnnouncement(assigned, announcers).layer2 === undefined;
    if (isOrphan) orphans.push(address);
    else isTaken = false;
  }
  return { orphans, isTaken };
}

/** Whether an agent that renews its Lease announces an address. */
function isWithAnother({ view, leases, nodeName }: DepartureOptions, address: string): boolean {
  return [...view.members().keys()].some(
    (node) =>
      node !== nodeName &&
      leases.isFresh(node) &&
      view.reports.get(node)?.announced.includes(address) === true,
  );
}
