import { createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Random } from '../../client/clock.ts';
import { chosenBackend } from '../../network/gateway/filters.ts';
import type { PlannedPort, StreamRule } from '../../network/gateway/plan.ts';
import { clientAddress, type ClientLimits } from '../client-limits.ts';
import { closed, openSockets, type RouterListener } from '../listeners.ts';
import type { RouterMetrics } from '../router-metrics.ts';
import type { RouterServing } from '../serving.ts';
import type { Tunnels } from '../tunnels.ts';

/** What carries connections whose bytes pass as they are: of TLSRoutes and TCPRoutes. */

export interface StreamOptions {
  readonly tunnels: Tunnels;
  readonly limits: ClientLimits;
  readonly random: Random;
  /** Counts and logs why a connection was cut. */
  readonly problem: RouterServing['problem'];
}

/**
 * Connects a client to a backend of a rule, by weight. The connection is reset where there is none.
 *
 * @param first bytes that were read of the client.
 */
export function carryStream(
  client: Socket,
  first: Buffer,
  rule: StreamRule | undefined,
  options: StreamOptions,
): void {
  const { tunnels, limits, random, problem } = options;
  client.on('error', () => client.destroy());
  const refuse = (reason: string, error?: Error): void => {
    const source = rule?.source;
    const object = source === undefined ? '' : `${source.kind} ${source.namespace}/${source.name}`;
    problem(reason, error, { object });
    reset(client);
  };
  if (rule === undefined) {
    refuse('NoHost');
    return;
  }
  const backend = chosenBackend(rule.backends, random());
  if (backend?.rule === undefined) {
    refuse(backend === undefined ? 'NoBackends' : 'InvalidBackend');
    return;
  }
  const leave = limits.enter(clientAddress(client));
  if (leave === undefined) {
    refuse('TooManyRequests');
    return;
  }
  client.on('close', leave);
  // One side may end while the other still sends.
  client.allowHalfOpen = true;
  void tunnels.passThrough(client, first, backend.rule, refuse);
}

/** The client sees that it was refused, where TCP can say so. */
export function reset(client: Socket): void {
  if (client instanceof TLSSocket || client.destroyed) client.destroy();
  else client.resetAndDestroy();
}

/** A listener for TCPRoutes: the oldest carries all connections. */
export function tcpListener(
  plan: () => PlannedPort,
  options: StreamOptions,
  metrics: RouterMetrics,
): RouterListener {
  const server = createServer({ allowHalfOpen: true, noDelay: true });
  const sockets = openSockets(server, metrics, 'gateway');
  server.on('connection', (socket: Socket) => {
    carryStream(socket, Buffer.alloc(0), plan().listeners[0]?.streams[0], options);
  });
  return {
    server,
    drain: () => closed(server),
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}
