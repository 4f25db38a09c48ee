import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createTransport } from '../../../src/client/connect.ts';
import { offerAddresses } from '../../../src/commands/default-pool.ts';
import { listAt } from '../../../src/objects/json.ts';
import { Connection } from '../connection.ts';
import { createServices, createShop } from '../forwarding-objects.ts';
import type { MeasuredProcess } from '../measured-process.ts';
import { startOwn } from '../own-commands.ts';
import { ServerProcess } from '../server-process.ts';
import { atMostOfPeer, type Compared, type Goal, type Part, progress } from './compared.ts';
import { installMetalLb, startMetalLbController } from './metallb.ts';
import { until } from '../until.ts';

const services = 1000;
const restMs = 20_000;
const deadlineMs = 180_000;

interface Took {
  /** From the last create to the last address. */
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly idleMiB: number;
  /** With the Services. */
  readonly laterMiB: number;
}

/** Addresses for Services of type LoadBalancer, beside MetalLB's controller. Both work for an API server of ours. */
export const loadBalancer: Part = {
  needs: [],
  peers: ['metallb-controller'],
  async measure(isAlone) {
    const ours = await assign(async (server) => {
      const client = await createTransport({ kind: 'endpoint', ...server.target });
      await offerAddresses(client, ['198.18.0.0/16']);
      await client.close();
      return (await startOwn('controller', ['--kubeconfig', server.kubeconfig])).process;
    });
    const peer = isAlone
      ? undefined
      : await assign(async (server, folder) => {
          await installMetalLb(server);
          return startMetalLbController(server, folder);
        });
    const row = (name: string, unit: string, of: (took: Took) => number, goal?: Goal): Compared => ({
      ...{ name: `load-balancer: ${name}`, unit, ours: of(ours) },
      ...(peer === undefined ? {} : { peer: { name: 'MetalLB controller', value: of(peer) } }),
      ...(goal === undefined ? {} : { goal }),
    });
    return [
      row(`${services} Services, last create → last address`, 's', (took) => took.seconds, atMostOfPeer(1)),
      row(`CPU of ${services} Services`, 's', (took) => took.cpuSeconds, atMostOfPeer(1)),
      row('memory without them', 'MiB', (took) => took.idleMiB),
      row('memory with them', 'MiB', (took) => took.laterMiB),
    ];
  },
};

async function assign(
  start: (server: ServerProcess, folder: string) => Promise<MeasuredProcess>,
): Promise<Took> {
  const folder = await mkdtemp(join(tmpdir(), 'servicenet-load-balancer-'));
  const flags = ['--network', 'off', '--nodes', '0', '--default-pool', '', '--log-level', 'error'];
  const server = await ServerProcess.start([...flags, '--controllers', 'service-cidr-controller'], []);
  try {
    await createShop(server.target, '127.0.0.1');
    const controller = await start(server, folder);
    progress('load-balancer: 20 s at rest');
    await delay(restMs);
    const idleMiB = await controller.residentMiB();
    const before = await controller.cpuSeconds();
    progress(`load-balancer: ${services} Services`);
    await createServices(server.target, { to: services, endpointsEach: 0, type: 'LoadBalancer' });
    const created = performance.now();
    await untilAssigned(server);
    const seconds = (performance.now() - created) / 1000;
    const cpuSeconds = (await controller.cpuSeconds()) - before;
    await delay(restMs);
    const laterMiB = await controller.residentMiB();
    await controller.stop();
    return { seconds, cpuSeconds, idleMiB, laterMiB };
  } finally {
    await server.stop();
    await rm(folder, { recursive: true });
  }
}

async function untilAssigned({ target }: ServerProcess): Promise<void> {
  const connection = await Connection.open(target);
  const isAssigned = async (): Promise<boolean> => {
    const answer = await connection.request({ method: 'GET', path: '/api/v1/namespaces/shop/services' });
    const list: unknown = JSON.parse(answer.toString());
    return listAt(list, 'items').every(
      (item) => listAt(item, 'status', 'loadBalancer', 'ingress').length > 0,
    );
  };
  await until('addresses of all Services', isAssigned, { deadlineMs });
  connection.close();
}
