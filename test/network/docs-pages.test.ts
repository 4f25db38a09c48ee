import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { blocksOf, stepsOf } from '../support/pages.ts';
import { missingFor } from './support/gate.ts';
import { type Page, PageReader, reasonOf } from './support/page-reader.ts';
import { end, UpHome } from './support/up-process.ts';

const maker = process.getuid?.() === 0 ? 'root' : 'user';
const missing = missingFor(maker);
const repository = join(import.meta.dirname, '../..');

const quickStart = 'test/network/quick-start.test.ts';
const tour = 'test/network/tour.test.ts';
const packaged = 'test/package/package.test.ts';
const bird = 'test/network/emulation/bgp.test.ts';
const nodes = 'docker, and nodes that are machines';
const helm = 'helm; test/integration/chart.test.ts renders the chart';

const pool = (name: string, addresses: string): string =>
  JSON.stringify({
    ...{ apiVersion: 'servicenet.dev/v1alpha1', kind: 'AddressPool' },
    ...{ metadata: { name }, spec: { addresses: [addresses] } },
  });

/** All pages with blocks, in the order in which they are followed: what one leaves may be there for the next. */
const pages: Readonly<Record<string, Page>> = {
  'README.md': {
    not: {
      '$ npm ci': quickStart,
      '$ kubectl get nodes': quickStart,
      '$ npm run -s servicenet -- run': quickStart,
      'alias servicenet': 'an interactive shell',
      'import {': packaged,
    },
  },
  'CONTRIBUTING.md': { not: { 'export const': 'test/integration/adding-a-controller.test.ts' } },
  'docs/tour.md': { not: { '': tour } },
  'docs/testing-your-operator.md': { not: { '': packaged } },
  'docs/pods.md': {
    not: { '': 'the go command builds agnhost for minutes; `npm run test:upstream` runs it' },
  },
  // Before pages that leave Pods of their own, whom the matrix would name.
  'docs/trace.md': {
    before: `sed -n '/^.\`\`yaml$/,/^.\`\`$/p' servicenet/docs/trace.md | grep -v '^.\`\`' > catalog.yaml`,
    not: {
      'STAGE                   VERDICT     OBJECT': 'a network that does not enforce a policy',
      'Pod shop/cart-57f45455-gf8jw': 'no command: a part of what one prints',
    },
    words: { NODE_PORT: `kubectl -n shop get service cart -o jsonpath='{.spec.ports[0].nodePort}'` },
  },
  'docs/replacing-kube-proxy.md': {
    before: 'kubectl apply -f servicenet/test/fixtures/kube-proxy.yaml',
    not: {
      '$ kubectl -n servicenet-system rollout status': 'ports of nodes that the agents of `up` do not have',
      '$ helm': helm,
    },
    after: `kubectl -n kube-system delete daemonset kube-proxy
      kubectl -n servicenet-system delete daemonset servicenet-agent`,
  },
  'docs/announcing.md': {
    words: { 'node NAME': 'echo node node-1', 'service NAME': 'echo service -n shop storefront' },
    not: { '$ arping': 'a LAN of machines' },
    after: 'kubectl delete addresspool home',
  },
  'docs/deploying.md': {
    before: 'cp deploy/overlays/homelab/pool.yaml .',
    not: { '$ docker': nodes, '$ helm': helm },
    after: 'kubectl delete addresspool home',
  },
  'docs/flows.md': { not: { '': 'flows of a while, and with -f without an end; emulation/flows.test.ts' } },
  'docs/gateway-api.md': {
    not: {
      'ADDRESS=': 'a shell variable; each command is run in a shell of its own',
      'servicenet run': 'the same',
      '- name: https': 'no command: a part of a Gateway',
    },
    after: 'kubectl delete gateway,httproute --all --all-namespaces',
  },
  'docs/page.md': {
    not: {
      'page: http': 'a terminal',
      'servicenet page --kubeconfig': 'a cluster called prod',
      'link=': 'the page of an `up` for itself; each command is run in a shell of its own',
    },
  },
  'docs/router.md': {
    words: {
      ADDRESS: `kubectl -n kube-system get service servicenet-router -o jsonpath='{.status.loadBalancer.ingress[0].ip}'`,
    },
    not: { 'servicenet router --watch': 'a cluster whose Pods this machine reaches' },
  },
  'docs/pools.md': {
    before: `echo '${pool('imported-addresses', '192.0.2.9')}' | kubectl apply -f -
      echo '${pool('default', '198.51.100.0/24')}' > pool.yaml`,
    after: 'kubectl delete addresspool imported-addresses',
  },
  'docs/policies.md': { after: 'kubectl delete deployment,service,networkpolicy --all' },
  'docs/troubleshooting.md': {
    before: `kubectl create deployment web --image=nginx --port=80
      kubectl expose deployment web --port=80 --type=LoadBalancer`,
    after: 'kubectl delete deployment,service web',
  },
  'docs/dns.md': {
    not: {
      'servicenet dns': 'ports of this machine; test/integration/dns-command.test.ts takes free ones',
    },
  },
  'docs/kinds/egress-ip.md': {
    servers: ['servicenet run --outside -- python3'],
    after: 'kubectl delete pod client; kubectl delete egressip shop',
  },
  'docs/kinds/egress-qos.md': {},
  'docs/kinds/egress-router.md': {
    servers: ['servicenet run --outside -- python3'],
    after: 'kubectl -n shop delete service partners',
  },
  'docs/kinds/network-attachment-definition.md': {},
  'docs/kinds/ip-pool.md': {
    before: `sed -n '/^.\`\`yaml$/,/^.\`\`$/p' servicenet/docs/kinds/network-attachment-definition.md | grep -v '^.\`\`' | kubectl apply -f -`,
    after: 'kubectl -n shop delete pod/web net-attach-def/lan',
  },
  'docs/kinds/pod-network-connectivity-check.md': {},
  'docs/bgp.md': {
    not: {
      'router id 192.0.2.1;': 'test/network/announcing/bgp-agents.test.ts',
      'router bgp 64513': 'test/network/announcing/frr.test.ts',
      '/routing/bgp': 'RouterOS',
      'router id 172.19.255.2;': bird,
      'servicenet run --outside -- bird': bird,
    },
  },
  'docs/migrating-from-metallb.md': {
    before: `cd servicenet/test/fixtures
      kubectl apply -f metallb.yaml
      kubectl wait --for=condition=Established crd --all
      kubectl apply -f metallb-pools.yaml
      for given in web=192.0.2.7 mail=198.51.100.12 old=203.0.113.9; do
        kubectl -n shop patch service "\${given%=*}" --subresource=status --type=merge \\
          -p '{"status":{"loadBalancer":{"ingress":[{"ip":"'"\${given#*=}"'"}]}}}'
      done`,
    servers: ['servicenet controller'],
  },
};

/** Those of a cluster of their own, in which another load balancer gives the addresses. */
const ofMetalLB = 'docs/migrating-from-metallb.md';

const texts = new Map(Object.keys(pages).map((name) => [name, readFileSync(join(repository, name), 'utf8')]));

/** What can be named as not followed: each block, and each of its commands. */
function beginningsOf(text: string): readonly string[] {
  return blocksOf(text).flatMap((block) => [
    block.text,
    ...stepsOf(block).map(({ command }) => (block.kind === 'console' ? `$ ${command}` : command)),
  ]);
}

describe('pages', () => {
  it('are all in the list, which names nothing else', () => {
    const found = globSync(['*.md', 'docs/**/*.md', 'deploy/**/*.md', 'test/**/*.md'], { cwd: repository });
    const withBlocks = found.filter(
      (name) => blocksOf(readFileSync(join(repository, name), 'utf8')).length > 0,
    );
    expect(withBlocks.sort()).toEqual(Object.keys(pages).sort());
  });

  it.each(Object.entries(pages))('%s: what is not followed here is named, and is there', (name, page) => {
    const text = texts.get(name) ?? '';
    const strange = blocksOf(text).filter(
      (block) => !['console', 'sh', 'yaml'].includes(block.kind) && reasonOf(page, block.text) === undefined,
    );
    expect(strange).toEqual([]);
    const idle = Object.keys(page.not ?? {}).filter(
      (beginning) => !beginningsOf(text).some((each) => each.startsWith(beginning)),
    );
    expect(idle).toEqual([]);
    const tests = Object.values(page.not ?? {}).filter((reason) => reason.startsWith('test/'));
    const silent = tests.filter((file) => !existsSync(file) || !readFileSync(file, 'utf8').includes(name));
    expect(silent).toEqual([]);
  });
});

describe.skipIf(missing !== '')(`followed${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  const home = new UpHome(maker);
  let up: Awaited<ReturnType<UpHome['start']>>;

  beforeAll(async () => {
    up = await home.start([
      ...['--platform', 'openshift', '--default-pool', '192.0.2.0/24'],
      ...['--apply', join(repository, 'deploy/examples/quickstart.yaml')],
    ]);
  });
  afterAll(async () => {
    await end(up, 'SIGTERM');
    home.remove();
  });

  const inUp = Object.entries(pages).filter(
    ([name, page]) => name !== ofMetalLB && reasonOf(page, '') === undefined,
  );
  it.each(inUp)('%s', { timeout: 240_000 }, async (name, page) => {
    await new PageReader(home.folder, home.kubeconfig).follow(texts.get(name) ?? '', page);
  });

  describe('with another load balancer', () => {
    let server: TestServer;
    beforeAll(async () => {
      server = await startApiServer({ nodes: 1, controllers: ['*', '-load-balancer-controller'] });
    });
    afterAll(() => server.stop());

    it(ofMetalLB, { timeout: 240_000 }, async () => {
      const kubeconfig = join(home.folder, 'kubeconfig-metallb');
      writeFileSync(kubeconfig, server.kubeconfig, { mode: 0o600 });
      await new PageReader(home.folder, kubeconfig).follow(
        texts.get(ofMetalLB) ?? '',
        pages[ofMetalLB] ?? {},
      );
    });
  });
});
