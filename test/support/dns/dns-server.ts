import { pino } from 'pino';
import { systemClock } from '../../../src/client/clock.ts';
import { InformerFactory } from '../../../src/client/informers/shared-informer.ts';
import type { Transport } from '../../../src/client/transport.ts';
import { DnsServer, type DnsServerOptions } from '../../../src/dns/dns-server.ts';
import { localHost } from '../../../src/host/local-host.ts';
import { Metrics } from '../../../src/telemetry/metrics.ts';

/** A DNS server of this process that answers on 127.0.0.1. */
export interface RunningDns {
  readonly port: number;
  readonly server: DnsServer;
  readonly metrics: Metrics;
  stop(): Promise<void>;
}

/** Starts a DNS server on the objects that `transport` leads to, on any free port. */
export async function startDns(
  transport: Transport,
  options: Partial<Pick<DnsServerOptions, 'upstreams' | 'random' | 'zone' | 'log'>> = {},
): Promise<RunningDns> {
  // A port that UDP got may be in use by TCP.
  for (let attempt = 1; ; attempt++) {
    const clock = systemClock;
    const { log = pino({ enabled: false }), random = Math.random } = options;
    const metrics = new Metrics();
    const informers = new InformerFactory({ transport, clock, random, log });
    const server = new DnsServer({
      ...{ informers, host: localHost, clock, random, log, metrics },
      addresses: ['127.0.0.1'],
      port: 0,
      upstreams: [],
      zone: { domain: 'cluster.local', ttl: 5, pods: 'disabled', service: 'kube-system/kube-dns' },
      ...options,
    });
    const stopping = new AbortController();
    const stop = async (): Promise<void> => {
      stopping.abort();
      await server.close();
      await informers.finished();
    };
    informers.start(stopping.signal);
    try {
      const [bound] = await server.start();
      return { port: bound?.port ?? 0, server, metrics, stop };
    } catch (error) {
      await stop();
      if (attempt === 5) throw error;
    }
  }
}
