import { pino } from 'pino';
import { expect, test } from 'vitest';
import { Clients } from '../../src/client/resource-client.ts';
import { isNotFound } from '../../src/client/errors.ts';
import { serviceCIDRs } from '../../src/client/resources.ts';
import { runControllers } from '../../src/controllers/run.ts';
import { serviceCidrController } from '../../src/controllers/service-cidr/controller.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { FakeClock } from '../support/fake-clock.ts';

const year = 365 * 86_400_000;

test('a ServiceCIDR stays for ten seconds after its deletion, however wrong the clock is', async () => {
  const server = await startApiServer();
  const { client: transport } = server;
  const client = new Clients(transport).for(serviceCIDRs);
  const clock = new FakeClock();
  clock.jump(10 * year);
  const running = runControllers({
    transport,
    controllers: [serviceCidrController],
    log: pino({ enabled: false }),
    clock,
  });
  const isReady = async (name: string): Promise<boolean> => {
    const { status } = await client.get('', name);
    return status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;
  };
  const isThere = async (name: string): Promise<boolean> => {
    try {
      return (await client.get('', name)).metadata.name === name;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  };
  try {
    await client.create({ metadata: { name: 'one' }, spec: { cidrs: ['10.97.0.0/24'] } });
    await expect.poll(() => isReady('one')).toBe(true);
    await client.delete('', 'one');
    // Who serves this one has seen the deletion, which came before.
    await client.create({ metadata: { name: 'two' }, spec: { cidrs: ['10.98.0.0/24'] } });
    await expect.poll(() => isReady('two')).toBe(true);
    expect(await isThere('one')).toBe(true);
    await clock.advance(9000);
    expect(await isThere('one')).toBe(true);
    await clock.advance(2000);
    await expect.poll(() => isThere('one')).toBe(false);
  } finally {
    await running.stop();
    await server.stop();
  }
});
