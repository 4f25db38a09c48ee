import { pino } from 'pino';
import type { Transport } from '../../src/client/transport.ts';
import { Clients } from '../../src/client/resource-client.ts';
import type { ControllerContext } from '../../src/runtime/context.ts';
import { InformerFactory } from '../../src/client/informers/shared-informer.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import type { FakeClock } from './fake-clock.ts';

/** A transport that nothing may use. */
const noTransport: Transport = {
  server: 'none',
  request: () => Promise.reject(new Error('no request is expected')),
  stream: () => Promise.reject(new Error('no request is expected')),
  close: () => Promise.resolve(),
};

/** What a controller gets, with events kept in a list and without randomness. */
export function controllerContext(
  clock: FakeClock,
  transport: Transport = noTransport,
): ControllerContext & { readonly recorded: string[] } {
  const log = pino({ level: 'silent' });
  const metrics = new Metrics();
  const random = (): number => 0;
  const recorded: string[] = [];
  return {
    clients: new Clients(transport),
    informers: new InformerFactory({ transport, clock, random, log, metrics }),
    events: {
      event: (regarding, type, reason, message) => {
        recorded.push(`${type} ${reason} ${regarding.metadata.name ?? ''}: ${message}`);
      },
    },
    clock,
    random,
    log,
    metrics,
    serves: () => true,
    recorded,
  };
}
