import { expect, test } from 'vitest';
import { routerConfig } from '../../src/flags/router.ts';
import { listAt, recordAt } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { givenFlags } from '../support/command-line.ts';
import { kustomizeWith, nameOf } from '../support/manifests.ts';
import { PermissionRecorder } from '../support/permission-recorder.ts';
import { grantsOf, textsAt } from '../support/role-rules.ts';
import { startRouter } from '../support/router/router.ts';

const own = kustomizeWith('router').filter(({ metadata }) => metadata.name === 'servicenet-router');

test('the role grants what the router reads, by watches that begin with a list and by lists, and writes of status, Leases and Events', async () => {
  const api = await startApiServer({ controllers: [], nodes: 0, gatewayApi: 'standard' });
  const asked = new Set<string>();
  for (const watchList of [true, false]) {
    const recorder = new PermissionRecorder(api.client, { watchList, lagging: undefined });
    const router = await startRouter(recorder, { gateways: true });
    await router.stop();
    for (const phrase of recorder.phrases()) asked.add(phrase);
  }
  await api.stop();
  const granted = grantsOf(own).map(({ name }) => name);
  const writes = granted.filter((name) => !asked.has(name));
  expect([...asked].filter((name) => !granted.includes(name))).toEqual([]);
  // Those of its leader: what GatewayWriter and gatewayClassLoop make and read.
  const ofGateways = [
    ...['create services', 'patch services'],
    ...['create endpointslices.discovery.k8s.io', 'patch endpointslices.discovery.k8s.io'],
    'update gateways.gateway.networking.k8s.io/finalizers',
    'get customresourcedefinitions.apiextensions.k8s.io',
  ];
  expect(writes.filter((name) => !/leases|status|events/.test(name)).toSorted()).toEqual(
    ofGateways.toSorted(),
  );
});

test('the flags of the Deployment are those of the command', () => {
  const deployment = own.find((object) => nameOf(object) === 'Deployment/servicenet-router');
  const [container] = listAt(recordAt(deployment, 'spec', 'template', 'spec'), 'containers');
  const [name = '', ...args] = textsAt(container, 'args');
  const flags = args.map((arg) => arg.replace('$(POD_IPS)', '10.244.0.2,fd00:244::2'));
  expect(routerConfig(givenFlags(name, flags))).toMatchObject({
    addresses: ['10.244.0.2', 'fd00:244::2'],
    httpPort: 8080,
    httpsPort: 8443,
    publishService: 'servicenet-system/servicenet-router',
    lameduckMs: 10_000,
    metrics: { host: '', port: 9154 },
    routes: true,
  });
});
