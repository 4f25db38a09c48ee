import { pino } from 'pino';
import { expect, test } from 'vitest';
import { runControllers, type RunningControllers } from '../../src/controllers/run.ts';
import { attachmentsController } from '../../src/platforms/cni/controller.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';
import { UnreliableTransport } from '../support/unreliable-transport.ts';
import { createPod, defineNetworks, findingsOf, follow, Ledger, pods } from './attachments/ledger.ts';
import { Choices } from './faults/random.ts';

const rounds = 9;
/** So many Pods that half of the addresses is enough for them: a lost delete keeps one until the nightly collection. */
const most = 17;
const faults = { dropped: 0.08, unanswered: 0.08, late: 0.08, slow: 0.2 };

/** `npm run test:long` takes more. */
const seeds = Number(process.env['SERVICENET_ATTACHMENT_SEEDS'] ?? 1);

test.each(Array.from({ length: seeds }, (_, index) => index + 1))(
  'two slow controllers whose writes are lost, unanswered and late give no address twice (seed %i)',
  { timeout: 240_000 },
  async (seed) => {
    const server = await startApiServer({ platform: 'openshift', controllers: [] });
    await defineNetworks(server);
    const ledger = new Ledger();
    const stop = new AbortController();
    const following = follow(server, pods, stop.signal, (type, pod) => ledger.see(type, pod));
    const transports = [1, 2].map(
      (instance) => new UnreliableTransport(server.client, faults, new Choices(10 * seed + instance).next),
    );
    const start = (transport: typeof server.client): RunningControllers =>
      runControllers({
        transport,
        controllers: [attachmentsController()],
        log: pino({ enabled: false }),
      });
    const running = transports.map((transport) => start(transport));
    const random = new Choices(seed).next;
    const alive: string[] = [];
    let made = 0;
    try {
      for (let round = 0; round < rounds; round++) {
        const gone = alive.splice(0, Math.max(Math.floor(random() * 6), alive.length + 5 - most));
        await Promise.all(
          gone.map((name) => call(server.client, 'DELETE', `${pods}/${name}?gracePeriodSeconds=0`)),
        );
        for (let i = 0; i < 5; i++) {
          // A name that has just been given back, or a new one.
          const name = random() < 0.3 ? (gone.pop() ?? `pod-${made}`) : `pod-${made}`;
          alive.push(name);
          await createPod(server, name, made++);
        }
        if (random() < 0.5) await expect.poll(() => ledger.attached, { timeout: 60_000 }).toBe(alive.length);
      }
      await expect.poll(() => ledger.attached, { timeout: 60_000 }).toBe(alive.length);
      await Promise.all(transports.map((transport) => transport.calm()));
      // What a lost delete has left is found by the next instance.
      running.push(start(server.client));
      await expect.poll(() => findingsOf(server), { timeout: 60_000 }).toBe('');
      expect(ledger.problems.join('\n')).toBe('');
      expect(ledger.given).toBeGreaterThan(10);
    } finally {
      await Promise.all(running.map((each) => each.stop()));
      stop.abort();
      await following;
      await server.stop();
    }
  },
);
