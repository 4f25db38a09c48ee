import { afterAll, beforeAll, expect, it } from 'vitest';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';

describePods('the router of a cluster network with OpenShift’s kinds', () => {
  let pods: PodNetwork;
  let address = '';

  beforeAll(async () => {
    pods = await PodNetwork.start({ nodes: 1, platform: 'openshift' });
    await pods.deploy('web', 1, { ports: [{ containerPort: 8080 }] });
    await pods.service('web', {}, 8080);
    await pods.running('web', 1);
  });
  afterAll(() => pods.server.stop());

  const ask = (host: string): Promise<string> =>
    pods.curl({ outside: true }, `http://${address}/hostname`, '-H', `Host: ${host}`);

  it('begins with the first Route, and carries requests for the host that it was given', async () => {
    const path = pods.path('routes', 'route.openshift.io/v1');
    const { status, body } = await pods.call('POST', path, {
      metadata: { name: 'direct' },
      spec: { to: { name: 'web' } },
    });
    expect(status).toBe(201);
    const service = await until(
      async () => (await pods.call('GET', '/api/v1/namespaces/kube-system/services/servicenet-router')).body,
      (found) => listAt(found, 'status', 'loadBalancer', 'ingress').length > 0,
    );
    address = textAt(listAt(service, 'status', 'loadBalancer', 'ingress')[0], 'ip');
    await until(
      () => ask(textAt(body, 'spec', 'host')),
      (answer) => answer.startsWith('web-'),
    );
  });

  it('serves an Ingress by the Route that is made of it, once, and names itself in its status', async () => {
    const path = pods.path('ingresses', 'networking.k8s.io/v1');
    const backend = { service: { name: 'web', port: { number: 80 } } };
    await pods.call('POST', path, {
      metadata: { name: 'shop' },
      spec: { rules: [{ host: 'shop.test', http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }] },
    });
    const ingress = await until(
      async () => (await pods.call('GET', `${path}/shop`)).body,
      (found) => listAt(found, 'status', 'loadBalancer', 'ingress').length > 0,
    );
    expect(textAt(ingress, 'spec', 'ingressClassName')).toBe('openshift-default');
    expect(listAt(ingress, 'status', 'loadBalancer', 'ingress')).toEqual([
      { hostname: 'servicenet-router.kube-system.svc.cluster.local' },
    ]);
    await until(
      () => ask('shop.test'),
      (answer) => answer.startsWith('web-'),
    );
  });
});
