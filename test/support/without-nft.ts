/**
 * Started by network-without-parts.test.ts where nft cannot be found: deploys two Pods with a Service, and prints as JSON who
 * answers by its cluster IP and node port, and how a Service without Pods does.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { call } from './test-server.ts';

const server = await startApiServer({ network: true, nodes: 2 });
try {
  const labels = { app: 'web' };
  const container = { name: 'web', image: 'web', ports: [{ containerPort: 8080 }] };
  await post('/apis/apps/v1/namespaces/default/deployments', {
    metadata: { name: 'web' },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [container] } },
    },
  });
  const web = await service('web', labels);
  const empty = await service('empty', { app: 'nothing' });
  const answering = new Set<string>();
  for (let n = 0; answering.size < 2 && n < 300; n++) {
    const answer = await curl({ namespace: 'default' }, `http://${web.clusterIP}`);
    if (answer !== '') answering.add(textAt(JSON.parse(answer), 'pod'));
    await sleep(50);
  }
  const [node] = listAt(await get('/api/v1/nodes/node-1'), 'status', 'addresses');
  const outside = await curl({ outside: true }, `http://${textAt(node, 'address')}:${web.nodePort}`);
  const refused = await server.run(['curl', '-sS', `http://${empty.clusterIP}`], { node: 'node-1' });
  const report = { answering: answering.size, outside: outside !== '', refused: refused.stderr };
  process.stdout.write(`${JSON.stringify(report)}\n`);
} finally {
  await server.stop();
}

async function service(name: string, selector: object): Promise<{ clusterIP: string; nodePort: number }> {
  const ports = [{ port: 80, targetPort: 8080 }];
  const body = await post('/api/v1/namespaces/default/services', {
    metadata: { name },
    spec: { type: 'NodePort', selector, ports },
  });
  const [port] = listAt(body, 'spec', 'ports');
  return { clusterIP: textAt(body, 'spec', 'clusterIP'), nodePort: Number(recordAt(port)['nodePort']) };
}

async function post(path: string, body: object): Promise<unknown> {
  const answer = await call(server.client, 'POST', path, { body });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body;
}

async function get(path: string): Promise<unknown> {
  return (await call(server.client, 'GET', path)).body;
}

async function curl(where: Parameters<typeof server.run>[1], url: string): Promise<string> {
  return (await server.run(['curl', '-s', '--max-time', '5', url], where)).stdout;
}
