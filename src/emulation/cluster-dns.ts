import { whenAborted } from '../client/abort.ts';
import { InformerFactory } from '../client/informers/informer-factory.ts';
import { endpointSlices, services } from '../client/resources.ts';
import type { Transport } from '../client/transport.ts';
import { DnsServer } from '../dns/dns-server.ts';
import { localHost } from '../host/local-host.ts';
import { dnsAddress, dnsServiceKey, dnsServiceObjects } from '../network/dns/dns-service.ts';
import { resolvConf } from '../network/dns/resolv-conf.ts';
import type { ParsedCidr } from '../objects/address.ts';
import type { Pod } from '../objects/types/core.generated.ts';
import type { ControllerContext, Runnable } from '../runtime/context.ts';
import { createMissing } from './create-missing.ts';

const domain = 'cluster.local';
const port = 53;

/** DNS of the cluster: a server on the control plane, behind the Service kube-dns at the tenth address of the range. */
export class ClusterDns implements Runnable {
  readonly #context: ControllerContext;
  readonly #transport: Transport;
  readonly #addresses: readonly string[];
  readonly #serviceRanges: readonly ParsedCidr[];

  /** @param addresses of the control plane. */
  constructor(
    context: ControllerContext,
    transport: Transport,
    addresses: readonly string[],
    serviceRanges: readonly ParsedCidr[],
  ) {
    this.#context = context;
    this.#transport = transport;
    this.#addresses = addresses;
    this.#serviceRanges = serviceRanges;
  }

  /** A Pod's `/etc/resolv.conf`. A node of this network has none: no name outside of the cluster can be asked for. */
  resolvConfOf(pod: Pod): string {
    const node = { nameservers: [], searches: [], options: [] };
    return resolvConf(pod, { servers: this.#serviceRanges.map(dnsAddress), domain, node }).text;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log, metrics } = this.#context;
    // The agents' informers leave headless Services out.
    const informers = new InformerFactory({ transport: this.#transport, clock, random, log });
    const server = new DnsServer({
      ...{ informers, host: localHost, clock, random, metrics },
      // No warning: names outside of the cluster have no upstream here.
      log: log.isLevelEnabled('error') ? log.child({}, { level: 'error' }) : log,
      zone: { domain, ttl: 5, pods: 'insecure', service: dnsServiceKey },
      ...{ addresses: this.#addresses, port, upstreams: [] },
    });
    informers.start(signal);
    try {
      await server.start();
      await this.#createService();
    } catch (error) {
      log.error({ err: error }, 'no names are resolved in the cluster network');
    }
    await whenAborted(signal);
    await server.close();
    await informers.finished();
  }

  async #createService(): Promise<void> {
    const { service, slices } = dnsServiceObjects(this.#serviceRanges, this.#addresses, port);
    const { clients } = this.#context;
    await createMissing(clients.for(services), service);
    for (const slice of slices) await createMissing(clients.for(endpointSlices), slice);
  }
}
