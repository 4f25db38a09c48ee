import { setTimeout as delay } from 'node:timers/promises';
import { familyOf } from '../../network/support/up-process.ts';
import { measureFilled } from '../many-objects.ts';
import { pssMiBOf } from '../measured-process.ts';
import { ServerProcess } from '../server-process.ts';
import { atMost, type Compared, type Part, progress } from './compared.ts';

const restMs = 20_000;

const services = 10_000;
const pods = 50_000;

/** Memory of `up` with many objects, which takes minutes. There is no peer. */
export const many: Part = {
  needs: [],
  peers: [],
  async measure() {
    progress(`many: ${services} Services and ${pods} Pods`);
    // As `npm start` and the image run it.
    const { rested } = await measureFilled(services, pods, ['--max-semi-space-size=4']);
    const name = `many: up with ${services} Services and ${pods} Pods`;
    return [{ name, unit: 'MiB', ours: rested, goal: atMost(800) }];
  },
};

/** Of `up` at rest, with the network and without. */
export async function memoryOfUp(): Promise<readonly Compared[]> {
  const rows: Compared[] = [];
  for (const [network, goal] of [
    ['off', 130],
    ['on', 230],
  ] as const) {
    progress(`memory: up --network=${network}, 20 s at rest`);
    let ours = 0;
    // The first start compiles.
    for (const restFor of [3000, restMs]) {
      const up = await ServerProcess.start(['--network', network, '--log-level', 'error'], []);
      await delay(restFor);
      ours = await pssMiBOf([up.pid, ...familyOf(up).map(Number)]);
      await up.stop();
    }
    const name = `memory: up --network=${network} at rest, PSS of all processes`;
    rows.push({ name, unit: 'MiB', ours, goal: atMost(goal) });
  }
  return rows;
}
