/**
 * A program in the network of `up`, for `flow-cost.ts`: two Pods and a Service, then for each line that it reads five seconds
 * of new connections, and how many there were as a line of JSON: one request each, as many as the machine can, or for
 * `flood` datagrams to ports where nothing listens, 5,000 a second.
 */
import { createSocket } from 'node:dgram';
import { Agent, get } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { createTransport } from '../../src/client/connect.ts';
import { listAt, textAt } from '../../src/objects/json.ts';
import { call } from '../support/test-server.ts';

const atOnce = 16;
const durationMs = 5000;
const { KUBECONFIG: path = '' } = process.env;
const api = await createTransport({ kind: 'kubeconfig', path });
const namespace = '/api/v1/namespaces/default';
const containers = [{ name: 'main', image: 'web', ports: [{ containerPort: 80 }] }];
await create(`${namespace}/pods`, {
  metadata: { name: 'web', labels: { app: 'web' } },
  spec: { containers },
});
const service = await create(`${namespace}/services`, {
  metadata: { name: 'web' },
  spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
});
const host = textAt(service, 'spec', 'clusterIP');
while (!(await isAnswered())) await delay(100);
process.stdout.write('{"requests":0}\n');
for await (const line of createInterface({ input: process.stdin })) {
  const requests = line === 'flood' ? await flood() : await asks();
  process.stdout.write(`${JSON.stringify({ requests })}\n`);
}
await api.close();

async function create(to: string, body: object): Promise<object> {
  const answer = await call(api, 'POST', to, { body });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body;
}

async function asks(): Promise<number> {
  let requests = 0;
  const end = performance.now() + durationMs;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (performance.now() < end) if (await isAnswered()) requests++;
    }),
  );
  return requests;
}

async function flood(): Promise<number> {
  const { body } = await call(api, 'GET', '/api/v1/nodes/node-1');
  const to = textAt(listAt(body, 'status', 'addresses')[0], 'address');
  const socket = createSocket('udp4');
  // Answers that there is nobody.
  socket.on('error', () => undefined);
  let sent = 0;
  const end = performance.now() + durationMs;
  while (performance.now() < end) {
    await delay(10);
    for (const until = sent + 50; sent < until; sent++) socket.send('', 1024 + (sent % 60_000), to);
  }
  socket.close();
  return sent;
}

/** By a connection of its own. */
async function isAnswered(): Promise<boolean> {
  const agent = new Agent({ keepAlive: false });
  const answered = Promise.withResolvers<boolean>();
  const sent = get({ host, path: '/hostname', agent, timeout: 1000 }, (message) => {
    message.resume();
    message.on('error', () => answered.resolve(false));
    message.once('end', () => answered.resolve(true));
  });
  sent.on('error', () => answered.resolve(false));
  sent.once('timeout', () => sent.destroy());
  return await answered.promise;
}
