import { readFile } from 'node:fs/promises';
import { AvailabilityTracker } from '../client/availability-tracker.ts';
import { systemClock } from '../client/clock.ts';
import { InformerFactory } from '../client/informers/shared-informer.ts';
import { PermissionTracker } from '../client/permission-tracker.ts';
import type { DnsConfig } from '../flags/dns.ts';
import { DnsServer } from '../dns/dns-server.ts';
import type { Upstream } from '../dns/forwarder.ts';
import { returnUnusedMemory } from '../host/unused-memory.ts';
import { dnsServiceKey } from '../network/dns/dns-service.ts';
import { parseResolvConf } from '../network/dns/resolv-conf.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { connectCluster } from './connect.ts';
import { firstWorker, type Worker } from './workers/worker.ts';

/**
 * Answers DNS queries for a cluster until a signal comes, and for `--lameduck` after it: kube-proxies may send some
 * until they see that this Pod ends.
 *
 * @param worker which of its processes this is.
 * @throws the system's error where it cannot listen, or cannot read a file of `--upstream`.
 */
export async function dns(
  config: DnsConfig,
  worker: Worker = firstWorker({ command: 'dns', config }),
): Promise<void> {
  const { log, host, signal } = worker;
  const stopReturning = returnUnusedMemory(log);
  const stop = new AbortController();
  const metrics = new Metrics();
  const upstreams = await upstreamServers(config);
  const server = await connectCluster(config.cluster, metrics);
  const clock = systemClock;
  const random = Math.random;
  const transport = new PermissionTracker(new AvailabilityTracker(server, log, clock), log, clock);
  const informers = new InformerFactory({ transport, clock, random, log, metrics });
  const { clusterDomain: domain, ttlSeconds: ttl, pods, addresses, port } = config;
  const dnsServer = new DnsServer({
    informers,
    host,
    ...{ clock, random, log, metrics },
    zone: { domain, ttl, pods, service: dnsServiceKey },
    ...{ addresses, port, upstreams },
  });
  try {
    const telemetry = await worker.serveTelemetry({
      address: config.metrics,
      metrics,
      ready: () => [...informers.healthChecks(), transport.healthCheck(), dnsServer.healthCheck],
      log,
    });
    try {
      informers.start(stop.signal);
      // A signal during the wait for the API server ends it.
      const starting = dnsServer.start();
      const received = await Promise.race([signal.received, starting.then(() => undefined)]);
      if (received === undefined) {
        worker.startOthers();
        await signal.received;
        await clock.sleep(config.lameduckMs);
      }
      await dnsServer.close();
      await starting;
    } finally {
      stop.abort();
      await dnsServer.close();
      await informers.finished();
      await worker.endOthers();
      await telemetry.close();
    }
  } finally {
    await server.close();
    stopReturning();
    signal.release();
  }
}

/** The port of the servers in a resolv.conf. */
async function upstreamServers({ upstreams }: DnsConfig): Promise<Upstream[]> {
  const servers: Upstream[] = [];
  for (const upstream of upstreams) {
    if (!('file' in upstream)) {
      servers.push(upstream);
      continue;
    }
    const { nameservers } = parseResolvConf(await readFile(upstream.file, 'utf8'));
    for (const address of nameservers) servers.push({ address, port: 53 });
  }
  return servers;
}
