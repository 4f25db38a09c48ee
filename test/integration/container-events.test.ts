import { expect, onTestFinished, test } from 'vitest';
import { listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

test('Events of a stand-in have the words of Kubernetes 1.36, and name its container', async () => {
  const server = await startApiServer({ nodes: 1, controllers: ['*'] });
  onTestFinished(() => server.stop());
  const core = '/api/v1/namespaces/default';
  const spec = { containers: [{ name: 'web', image: 'nginx' }] };
  await call(server.client, 'POST', `${core}/pods`, { body: { metadata: { name: 'p' }, spec } });
  const events = async (): Promise<string[]> => {
    const { body } = await call(server.client, 'GET', `${core}/events`);
    return listAt(body, 'items')
      .filter((event) => textAt(event, 'source', 'component') === 'kubelet')
      .map((event) =>
        [
          textAt(event, 'reason'),
          textAt(event, 'involvedObject', 'fieldPath'),
          textAt(event, 'message'),
        ].join(' '),
      );
  };
  // kubelet `events/event.go` and `kuberuntime_container.go`: see pull request 134043.
  await expect
    .poll(events, { timeout: 60_000 })
    .toEqual([
      'Pulled spec.containers{web} Container image "nginx" already present on machine and can be accessed by the pod',
      'Created spec.containers{web} Container created',
      'Started spec.containers{web} Container started',
    ]);
});
