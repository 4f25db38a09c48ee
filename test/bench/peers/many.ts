import { measureFilled } from '../many-objects.ts';
import { atMost, type Part, progress } from './compared.ts';

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
