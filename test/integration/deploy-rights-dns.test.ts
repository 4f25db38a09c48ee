import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { dnsConfig } from '../../src/flags/dns.ts';
import { listAt, recordAt } from '../../src/objects/json.ts';
import { startDns } from '../support/dns/dns-server.ts';
import { givenFlags } from '../support/command-line.ts';
import { kustomizeWith, nameOf } from '../support/manifests.ts';
import { PermissionRecorder } from '../support/permission-recorder.ts';
import { grantsOf, textsAt } from '../support/role-rules.ts';

const own = kustomizeWith('dns').filter(({ metadata }) => metadata.name === 'servicenet-dns');
let api: TestServer;

beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0 });
});
afterAll(async () => {
  await api.stop();
});

test('the role grants what the server asks for, by watches that begin with a list and by lists', async () => {
  const asked = new Set<string>();
  for (const watchList of [true, false]) {
    const recorder = new PermissionRecorder(api.client, { watchList, lagging: undefined });
    const dns = await startDns(recorder);
    await dns.stop();
    for (const phrase of recorder.phrases()) asked.add(phrase);
  }
  expect([...asked].sort()).toEqual(
    grantsOf(own)
      .map(({ name }) => name)
      .sort(),
  );
});

test('the flags of the Deployment are those of the command', () => {
  const deployment = own.find((object) => nameOf(object) === 'Deployment/servicenet-dns');
  const [container] = listAt(recordAt(deployment, 'spec', 'template', 'spec'), 'containers');
  const [name = '', ...args] = textsAt(container, 'args');
  const flags = args.map((arg) => arg.replace('$(POD_IPS)', '10.244.0.2,fd00:244::2'));
  expect(dnsConfig(givenFlags(name, flags))).toMatchObject({
    addresses: ['10.244.0.2', 'fd00:244::2'],
    port: 1053,
    ttlSeconds: 30,
    lameduckMs: 5000,
    metrics: { host: '', port: 9153 },
  });
});
