import { Clients } from '../../../src/client/resource-client.ts';
import { services } from '../../../src/client/resources.ts';
import type { Service } from '../../../src/objects/types/core.generated.ts';
import { addressPools } from '../../../src/client/resources.ts';
import { handoverPools } from './actors/balancers.ts';
import { addressesOf } from './findings/balancing.ts';
import { findingsIn } from './findings/findings.ts';
import { History } from './history.ts';
import { Choices } from './random.ts';
import { chooseScene } from './scene.ts';
import type { Trace } from './trace.ts';
import { World } from './world.ts';

const steps = 32;
/** Writes of controllers per change of a user, retries and duplicates included, and for the start of the pools. */
const bound = { perChange: 12, more: 60 };

/** How a seed went. */
export interface Outcome {
  readonly seed: number;
  readonly changes: number;
  readonly writes: number;
  /** What is wrong; empty: nothing. */
  readonly findings: readonly string[];
  /** What was done to the controllers, by name, and how often. */
  readonly faults: ReadonlyMap<string, number>;
}

/** What a seed that failed says: what was wrong, and how to see it again. */
export function reportOf({ seed, findings }: Outcome): string {
  const more = findings.length > 8 ? [`and ${findings.length - 8} more`] : [];
  const lines = [
    ...findings.slice(0, 8),
    ...more,
    `npm run simulate -- --first ${seed} --seeds 1 --traces traces`,
  ];
  return [`seed ${seed} failed:`, ...lines.map((line) => `  ${line}`)].join('\n');
}

/**
 * Runs controllers against the embedded server behind a hostile network, with crashes on both sides, while users
 * change things; then lets the network be good, and looks at the cluster. A seed fixes every choice, but not the
 * moments at which the network and the processes meet: a failure comes back after a few runs of its seed, not always
 * in the first.
 */
export async function simulate(seed: number, trace?: Trace): Promise<Outcome> {
  const choices = new Choices(seed);
  const scene = chooseScene(choices);
  trace?.(`seed ${seed}: ${JSON.stringify(scene)}`);
  const world = await World.start(scene, choices.fork(), trace);
  try {
    const history = new History(choices.fork(), scene);
    await history.begin(world.client);
    await world.populate();
    const handOverAt = choices.chance(0.3) ? choices.below(steps) : steps;
    for (let i = 0; i < steps; i++) {
      await history.step(world.client);
      await world.clock.pause(choices.below(8));
      if (i === handOverAt) await handOver(world, history);
      await world.mishap();
    }
    const look = async (): Promise<string[]> => [
      ...(await findingsIn(world.client, scene)),
      ...(await history.findings(world.client)),
    ];
    const findings = await world.settle(look);
    const { writes, faults } = world.proxy;
    const { changes } = history;
    if (writes > bound.perChange * changes + bound.more)
      findings.push(`${writes} writes for ${changes} changes`);
    if (findings.length === 0) findings.push(...(await world.beginAnew()));
    if (findings.length === 0)
      findings.push(...(await history.services.lostPorts(new Clients(world.client))));
    findings.push(...world.proxy.copies.doneAgain, ...world.terms.findings());
    findings.push(...world.ledger.twice);
    // Two may lead for a moment after one was stopped for long: no write of theirs can tell.
    if (!faults.has('a leader stopped for a while')) findings.push(...world.ledger.balancedTwice);
    return { seed, changes, writes, findings, faults };
  } finally {
    await world.end();
  }
}

/**
 * A leader gives an address in its last moment, and its follower has not heard of it when it begins. Then the pool that
 * it came from is opened for all if one of them waits.
 */
async function handOver(world: World, history: History): Promise<void> {
  const clients = new Clients(world.client);
  const { reserved } = handoverPools;
  const listed = async (): Promise<Service[]> =>
    (await clients.for(services).list({ namespace: 'default' })).items;
  const isFull = async (): Promise<boolean> =>
    (await listed()).some(({ status }) =>
      status.conditions?.some(({ reason }) => reason === 'PoolExhausted'),
    );
  for (let left = 9; left > 0 && !(await world.clock.eventually(isFull, 8)); left--) {
    history.changes++;
    await history.services.createBalanced(clients);
  }
  let name = '';
  const isGiven = async (): Promise<boolean> => {
    const made = (await listed()).find(({ metadata }) => metadata.name === name);
    return made === undefined || addressesOf(made).length > 0;
  };
  const cameAbout = await world.handOver(async () => {
    history.changes++;
    name = await history.services.createBalanced(clients, reserved);
  }, isGiven);
  if (cameAbout) {
    await clients.for(addressPools).mergePatch('', reserved, { spec: { autoAssign: true } });
    // What was given before is not seen for so long that it may be believed free.
    await world.clock.sleep(3000);
  }
  await world.recover();
}
