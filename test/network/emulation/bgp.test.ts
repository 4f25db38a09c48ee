import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { blockOf } from '../../support/pages.ts';
import { missingFor, missingProgram } from '../support/gate.ts';
import { end, UpHome } from '../support/up-process.ts';

const missing = [missingFor('user'), missingProgram('bird', 'bird2')]
  .filter((what) => what !== '')
  .join(', ');

const bird = blockOf('docs/bgp.md', 'router id 172.19.255.2;');
const objects = `
apiVersion: servicenet.dev/v1alpha1
kind: BGPPeer
metadata: { name: outside }
spec: { myASN: 64512, peerASN: 64513, peerAddress: 172.19.255.2, holdTime: 3s }
---
apiVersion: servicenet.dev/v1alpha1
kind: AddressPool
metadata: { name: routed }
spec: { addresses: [203.0.113.0/24], announce: { bgp: {} } }
---
apiVersion: v1
kind: Service
metadata: { name: web, annotations: { servicenet.dev/pool: routed } }
spec: { type: LoadBalancer, selector: { app: web }, ports: [{ port: 80, targetPort: 8080 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: web, ports: [{ containerPort: 8080 }] }] }
`;

describe.skipIf(missing !== '')(`a router in \`up\`${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  const home = new UpHome('user');
  let up: ChildProcess;
  let router: ChildProcess;

  beforeAll(async () => {
    up = await home.start(['--nodes', '2']);
    const file = join(home.folder, 'bird.conf');
    writeFileSync(file, bird, { mode: 0o644 });
    writeFileSync(join(home.folder, 'objects.yaml'), objects, { mode: 0o644 });
    const control = ['-s', join(home.folder, 'bird.ctl'), '-P', join(home.folder, 'bird.pid')];
    router = home.begin(['--outside'], 'bird', '-f', '-c', file, ...control);
  });
  afterAll(async () => {
    await end(router, 'SIGKILL');
    await end(up, 'SIGTERM');
    home.remove();
  });

  it('reaches a Service by all nodes, and by the others once one is drained', async () => {
    const { stdout } = home.run(['--outside'], 'kubectl', 'apply', '-f', join(home.folder, 'objects.yaml'));
    expect(stdout).toContain('service/web created');
    const route = (): string => home.run(['--outside'], 'ip', 'route', 'show', 'proto', 'bird').stdout;
    await expect.poll(route).toMatch(/^203\.0\.113\.\d+ (.*\n\s+nexthop via 172\.18\.\S+ ){2}/);
    const [address = ''] = route().split(' ');
    const answer = (): string =>
      home.run(['--outside'], 'curl', '-s', '--max-time', '2', `http://${address}/hostname`).stdout;
    await expect.poll(answer).toMatch(/^web-/);
    home.run(['--outside'], 'kubectl', 'cordon', 'node-1');
    await expect.poll(route).toMatch(/^203\.0\.113\.\d+ via 172\.18\.\S+/);
    expect(answer()).toMatch(/^web-/);
  });
});
