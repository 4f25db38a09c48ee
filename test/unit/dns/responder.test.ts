import { encode, type OptAnswer } from 'dns-packet';
import fc from 'fast-check';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/client/clock.ts';
import { DnsMetrics } from '../../../src/dns/dns-metrics.ts';
import { Forwarder } from '../../../src/dns/forwarder.ts';
import { type Channel, DnsResponder } from '../../../src/dns/responder.ts';
import { localHost } from '../../../src/host/local-host.ts';
import { keyOf } from '../../../src/objects/meta.ts';
import type { ServiceSpec } from '../../../src/objects/types/core.generated.ts';
import { Metrics } from '../../../src/telemetry/metrics.ts';
import { service, slice, zoneOf } from '../network/dns/fixtures.ts';

/** What a Service and its slice may be; beyond the end: there is none. */
const specs: readonly ServiceSpec[] = [
  { clusterIPs: ['10.96.0.1'], ports: [{ name: 'http', protocol: 'TCP', port: 80 }] },
  { clusterIPs: ['10.96.0.2', 'fd00::2'], ports: [{ name: 'http', protocol: 'TCP', port: 81 }] },
  { clusterIPs: ['None'], ports: [] },
];
const endpoints = [['10.1.0.1'], ['10.1.0.2', '10.1.0.3'], []];

/** A Service, its slice, its namespace, or whether all objects have come, is another one from now on. */
const change = fc.record({
  of: fc.constantFrom('service', 'slice', 'namespace', 'synced'),
  value: fc.nat({ max: 3 }),
});
const query = fc.record({
  name: fc.constantFrom(
    'web.shop.svc',
    'WEB.shop.svc',
    '_http._tcp.web.shop.svc',
    'none.shop.svc',
    'shop.svc',
  ),
  type: fc.constantFrom<('A' | 'AAAA' | 'SRV' | 'TXT')[]>('A', 'AAAA', 'SRV', 'TXT'),
  edns: fc.constantFrom(undefined, 512, 4096),
  id: fc.nat({ max: 65_535 }),
  protocol: fc.constantFrom<('tcp' | 'udp')[]>('udp', 'tcp'),
});

function optOf(udpPayloadSize: number): OptAnswer {
  const none = { extendedRcode: 0, ednsVersion: 0, flags: 0, flag_do: false, options: [] };
  return { type: 'OPT', name: '.', udpPayloadSize, ...none };
}

function totals(text: string): readonly string[] {
  return text
    .split('\n')
    .filter((line) => /^coredns_dns_(requests_total|response\w+(_total|_sum|_count))\{/.test(line));
}

test('a responder that was asked before answers and counts as a new one', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(change, query, query), { maxLength: 60 }), async (steps) => {
      const zone = zoneOf({ namespaces: ['shop'] });
      let hasSynced = false;
      const counters = [new Metrics(), new Metrics()] as const;
      const [known, fresh] = counters.map((metrics) => new DnsMetrics(metrics, 53));
      const responder = (metrics = new DnsMetrics(new Metrics(), 53)): DnsResponder =>
        new DnsResponder({
          ...{ zone, metrics, clock: systemClock, log: pino({ level: 'silent' }) },
          hasSynced: () => hasSynced,
          forwarder: new Forwarder({ host: localHost, clock: systemClock, upstreams: [] }),
          random: () => 0,
        });
      const asked = responder(known);
      const { signal } = new AbortController();
      for (const step of steps) {
        if ('value' in step) {
          const spec = specs[step.value];
          const addresses = endpoints[step.value];
          const web = service('shop', 'web', spec ?? {});
          const part = slice('shop', 'web', addresses?.map((address) => ({ addresses: [address] })) ?? []);
          if (step.of === 'service') zone.setService(keyOf(web), spec === undefined ? undefined : web);
          else if (step.of === 'slice')
            zone.setSlice(keyOf(part), addresses === undefined ? undefined : part);
          else if (step.of === 'namespace') zone.setNamespace('shop', step.value > 0);
          else hasSynced = true;
          continue;
        }
        const channel: Channel = { protocol: step.protocol, family: 1 };
        const name = `${step.name}.cluster.local`;
        const options = step.edns === undefined ? [] : [optOf(step.edns)];
        const questions = [{ name, type: step.type }];
        const bytes = encode({ type: 'query', id: step.id, questions, additionals: options });
        expect(asked.respond(bytes, channel, signal)).toEqual(
          responder(fresh).respond(bytes, channel, signal),
        );
      }
      const [one, other] = await Promise.all(counters.map(({ registry }) => registry.metrics()));
      expect(totals(one ?? '')).toEqual(totals(other ?? ''));
    }),
  );
});
