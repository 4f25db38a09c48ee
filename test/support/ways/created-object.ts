/** Prints the files on the way of a created object through the API server, from its request to the answer, as JSON. */
import { request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { startApiServer } from '../../../src/testing/index.ts';
import { filesDuring } from './coverage.ts';

const server = await startApiServer();
const { url, ca, token } = server;

async function create(name: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const path = new URL('/api/v1/namespaces/default/configmaps', url);
  await new Promise((resolve, reject) => {
    const sent = request(path, { method: 'POST', ca, headers }, (response) => {
      response.resume().once('end', resolve);
      if (response.statusCode !== 201) reject(new Error(`${path.href}: ${response.statusCode}`));
    });
    sent.once('error', reject).end(JSON.stringify({ metadata: { name }, data: { key: 'value' } }));
  });
}

await create('first');
await sleep(1000);
process.stdout.write(JSON.stringify(await filesDuring(() => create('second'))));
await server.stop();
