/** Prints the files on the way of one EndpointSlice from an API server's watch to nft, as JSON. Arguments: URL, CA, token. */
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { systemClock } from '../../../src/client/clock.ts';
import { createTransport } from '../../../src/client/connect.ts';
import { InformerFactory } from '../../../src/client/informers/shared-informer.ts';
import { NodeAgent } from '../../../src/node/forwarding/agent.ts';
import { Metrics } from '../../../src/telemetry/metrics.ts';
import { FakeNft } from '../fake-nft.ts';
import { until } from '../until.ts';
import { filesDuring } from './coverage.ts';

const [url = '', caFile = '', token = ''] = process.argv.slice(2);
const ca = readFileSync(caFile);

/** A request by Node.js alone: our client would be on the way, too. */
async function post(path: string, body: unknown): Promise<void> {
  const text = JSON.stringify(body);
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  await new Promise((resolve, reject) => {
    const sent = request(new URL(path, url), { method: 'POST', ca, headers }, (response) => {
      response.resume().once('end', resolve);
      if (response.statusCode !== 201) reject(new Error(`${path}: ${response.statusCode}`));
    });
    sent.once('error', reject).end(text);
  });
}

const fake = new FakeNft({ conntrack: () => '', cat: () => '', ip: () => '[]' });
const log = pino({ level: 'error' }, pino.destination(2));
const transport = await createTransport({ kind: 'endpoint', url, ca, token });
const informers = new InformerFactory({ transport, clock: systemClock, random: Math.random, log });
const metrics = new Metrics();
const stop = new AbortController();
const agent = new NodeAgent({
  context: {
    ...{ informers, clock: systemClock, random: Math.random, log, metrics },
    events: { event: () => undefined },
  },
  host: fake.host,
  nodeName: 'node-1',
  forwarding: {
    families: ['IPv4'],
    masqueradeAll: false,
    nodePortAddresses: 'primary',
    podDetection: undefined,
    allowExternalIPs: true,
  },
  markMask: 0x4000,
  minSyncMs: 1,
  fullSyncMs: 3_600_000,
  besideOtherProxies: true,
});
const running = agent.run(stop.signal);
informers.start(stop.signal);
await post('/api/v1/nodes', { metadata: { name: 'node-1' } });
const services = '/api/v1/namespaces/default/services';
await post(services, { metadata: { name: 'web' }, spec: { ports: [{ port: 80 }] } });
const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
const slice = (name: string, address: string) => ({
  ...{ metadata: { name, labels: { 'kubernetes.io/service-name': 'web' } }, addressType: 'IPv4' },
  ...{ endpoints: [{ addresses: [address] }], ports: [{ port: 8080 }] },
});
// The first one brings what only the first of a Service brings.
await post(slices, slice('web-1', '10.244.0.1'));
const has = (address: string) => (): boolean =>
  fake.transactions.flat().some((line) => line.includes(address));
await until(has('10.244.0.1'));
await sleep(500);
const files = await filesDuring(async () => {
  await post(slices, slice('web-2', '10.244.0.2'));
  await until(has('10.244.0.2'));
});
process.stdout.write(JSON.stringify(files));
stop.abort();
await running;
await informers.finished();
await transport.close();
