import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { systemClock } from '../../../../src/client/clock.ts';
import { localHost } from '../../../../src/host/local-host.ts';
import { TargetChoice, BackendConnections } from '../../../../src/router/backends.ts';
import { ClientLimits } from '../../../../src/router/client-limits.ts';
import { Forward } from '../../../../src/router/forward.ts';
import { gatewayDecisions } from '../../../../src/router/decisions.ts';
import { Mirrors } from '../../../../src/router/gateway/mirrors.ts';
import { tlsPortListener } from '../../../../src/router/gateway/tls-port.ts';
import { RouterMetrics } from '../../../../src/router/router-metrics.ts';
import { RouterServing } from '../../../../src/router/serving.ts';
import { Tunnels } from '../../../../src/router/tunnels.ts';
import { Metrics } from '../../../../src/telemetry/metrics.ts';
import { pino } from 'pino';
import { portOf } from '../../../support/router/router.ts';

test('a connection that has said nothing yet holds no drain up', async () => {
  const [clock, random, host] = [systemClock, Math.random, localHost];
  const metrics = new RouterMetrics(new Metrics());
  const choice = new TargetChoice({ service: () => undefined, slices: () => [] }, clock, random);
  const connections = new BackendConnections({ host, clock, connectTimeoutMs: 1000 });
  const [tunnels, limits] = [new Tunnels(choice, connections), new ClientLimits(0, clock)];
  const mirrors = new Mirrors({ choice, connections, clock, metrics });
  const plan = () => ({ port: 443, protocol: 'TLS', listeners: [] }) as const;
  const serving = new RouterServing({
    onRefused: undefined,
    ...{ tunnels, limits, clock, metrics, accessLog: false, upgrades: [], backendTimeoutMs: 1000 },
    ...{ log: pino({ enabled: false }), forwardedPolicy: 'append' },
    forward: new Forward({ choice, connections, mirrors, clock }),
    decide: gatewayDecisions(plan, random),
  });
  const streams = { tunnels, limits, random, problem: serving.problem };
  const listener = tlsPortListener({ serving, metrics, clock, plan, streams, idleTimeoutMs: 60_000 });
  await localHost.listen(listener.server, '127.0.0.1', 0);
  const accepted = once(listener.server, 'connection');
  const client = connect(portOf(listener.server), '127.0.0.1');
  client.on('error', () => undefined);
  await accepted;
  // The limit for the first bytes is 10 s.
  await listener.drain();
  await once(client.resume(), 'close');
  expect(listener.server.listening).toBe(false);
});
