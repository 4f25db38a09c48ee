import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Transport } from '../../../src/client/transport.ts';
import { readHttpObjects, readTracedCluster } from '../../../src/view/trace-cluster.ts';
import { connectCluster } from '../../../src/commands/connect.ts';
import type { ClusterView } from '../../../src/network/path/cluster-view.ts';
import { planRequest, withBackends } from '../../../src/network/path/http.ts';
import type { HttpRequest } from '../../../src/network/path/stages.ts';
import { tracePath, type TraceSource } from '../../../src/network/path/trace.ts';
import { at, listAt } from '../../../src/objects/json.ts';
import { joinKey } from '../../../src/objects/meta.ts';
import { podsOfWorkload } from '../../../src/objects/pods.ts';
import { missingFor } from '../support/gate.ts';
import { end, UpHome } from '../support/up-process.ts';

const missing = missingFor('user');
const title = `trace of hosts and real requests${missing === '' ? '' : ` (missing: ${missing})`}`;
const manifest = join(import.meta.dirname, '../../../deploy/examples/quickstart.yaml');

const names = ['a.test', 'b.test', 'x.c.test', 'none.test'];
const asked = ['/', '/shop', '/shop/cart', '/shopping'];
const requests: readonly HttpRequest[] = names.flatMap((host) =>
  asked.flatMap((path) => [
    { scheme: 'http' as const, host, port: 80, path },
    { scheme: 'https' as const, host, port: 443, path },
  ]),
);

/** The Service `nobody` is not there, and `empty` has no Pod. */
const backend = fc.constantFrom('catalog', 'catalog', 'cart', 'cart', 'storefront', 'empty', 'nobody');
const path = fc.record({
  path: fc.constantFrom('/', '/shop', '/shop/', '/shop/cart'),
  pathType: fc.constantFrom('Prefix', 'Exact', 'ImplementationSpecific'),
  backend,
});
const ingress = fc.record({
  className: fc.constantFrom('servicenet', 'servicenet', 'servicenet', 'other', undefined),
  rules: fc.array(
    fc.record({
      host: fc.constantFrom('a.test', 'b.test', '*.c.test', undefined),
      paths: fc.array(path, { minLength: 1, maxLength: 2 }),
    }),
    { minLength: 1, maxLength: 2 },
  ),
  otherwise: fc.option(backend, { nil: undefined, freq: 3 }),
});
const route = fc.record({
  host: fc.constantFrom('a.test', 'b.test', 'x.c.test'),
  path: fc.constantFrom(undefined, '/shop'),
  to: backend,
  termination: fc.constantFrom(undefined, 'edge'),
  insecure: fc.constantFrom('None', 'Allow', 'Redirect'),
});
const policy = fc.record({
  app: fc.constantFrom('catalog', 'cart'),
  peers: fc.constantFrom(
    [],
    [{ podSelector: { matchLabels: { app: 'cart' } } }],
    [{ ipBlock: { cidr: '0.0.0.0/0' } }],
  ),
});
const random = fc.record({
  ingresses: fc.array(ingress, { minLength: 1, maxLength: 2 }),
  routes: fc.array(route, { maxLength: 2 }),
  policies: fc.array(policy, { maxLength: 2 }),
});
type RandomCluster = typeof random extends fc.Arbitrary<infer T> ? T : never;

describe.skipIf(missing !== '')(title, () => {
  const home = new UpHome('user');
  let up: ChildProcess;
  let transport: Transport;
  beforeAll(async () => {
    up = await home.start(['--platform', 'openshift', '--apply', manifest]);
    transport = await connectCluster({ kind: 'kubeconfig', path: home.kubeconfig });
    await send('POST', '/api/v1/namespaces/shop/services', {
      metadata: { name: 'empty' },
      spec: { selector: { app: 'empty' }, ports: [{ port: 80 }] },
    });
    await send('DELETE', '/apis/networking.k8s.io/v1/namespaces/shop/ingresses/shop');
  });
  afterAll(async () => {
    await transport.close();
    await end(up, 'SIGTERM');
    home.remove();
  });

  it('say the same of random Ingresses, Routes and policies', async () => {
    const seed = Number(process.env['TRACE_SEED'] ?? Date.now() % 1_000_000);
    console.log(`trace of hosts and requests: TRACE_SEED=${seed}`);
    const runs = Number(process.env['TRACE_RUNS'] ?? 4);
    const ready = async (): Promise<number> => {
      const list = await send('GET', '/apis/apps/v1/namespaces/shop/deployments');
      return listAt(list, 'items').filter((one) => Number(at(one, 'status', 'readyReplicas')) > 0).length;
    };
    await expect.poll(ready).toBe(3);
    let decided = 0;
    for (const one of fc.sample(random, { seed, numRuns: runs })) {
      const remove = await make(one);
      let answers = 0;
      const differences = async (): Promise<readonly string[]> => {
        const { differing, count } = await compare();
        answers = count;
        return differing;
      };
      await expect.poll(differences, { message: JSON.stringify(one) }).toEqual([]);
      decided += answers;
      await remove();
    }
    expect(decided).toBeGreaterThan(runs * requests.length);
  }, 900_000);

  async function send(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<unknown> {
    return (await transport.request(method, path, body === undefined ? {} : { body })).json();
  }

  async function make({ ingresses, routes, policies }: RandomCluster): Promise<() => Promise<void>> {
    const made: string[] = [];
    const create = async (list: string, name: string, spec: unknown): Promise<void> => {
      await send('POST', list, { metadata: { name }, spec });
      made.push(`${list}/${name}`);
    };
    const serviceOf = (name: string) => ({ service: { name, port: { number: 80 } } });
    for (const [index, { className, rules, otherwise }] of ingresses.entries()) {
      await create('/apis/networking.k8s.io/v1/namespaces/shop/ingresses', `ingress-${index}`, {
        ...(className === undefined ? {} : { ingressClassName: className }),
        ...(otherwise === undefined ? {} : { defaultBackend: serviceOf(otherwise) }),
        rules: rules.map(({ host, paths }) => ({
          ...(host === undefined ? {} : { host }),
          http: { paths: paths.map((each) => ({ ...each, backend: serviceOf(each.backend) })) },
        })),
      });
    }
    for (const [index, one] of routes.entries()) {
      const { termination } = one;
      await create('/apis/route.openshift.io/v1/namespaces/shop/routes', `route-${index}`, {
        ...{ host: one.host, to: { kind: 'Service', name: one.to } },
        ...(one.path === undefined ? {} : { path: one.path }),
        ...(termination === undefined
          ? {}
          : { tls: { termination, insecureEdgeTerminationPolicy: one.insecure } }),
      });
    }
    for (const [index, { app, peers }] of policies.entries()) {
      await create('/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies', `policy-${index}`, {
        ...{ podSelector: { matchLabels: { app } }, policyTypes: ['Ingress'] },
        ingress: peers.length === 0 ? [] : [{ from: peers }],
      });
    }
    return async () => {
      for (const each of made) await send('DELETE', each);
    };
  }

  /** @returns what trace and the router say of requests that they disagree about, and of how many trace has decided. */
  async function compare(): Promise<{ readonly differing: readonly string[]; readonly count: number }> {
    const { view } = await readTracedCluster(transport, {
      ...{ clusterCidrs: undefined, masqueradeAll: undefined, nodePortAddresses: undefined },
    });
    const objects = await readHttpObjects(transport);
    const [cart] = podsOfWorkload(view.objects.pods, {
      ...{ kind: 'Deployment', namespace: 'shop', name: 'cart' },
    });
    if (cart === undefined) throw new Error('no Pod of cart');
    const sources: readonly (readonly [readonly string[], TraceSource])[] = [
      [['--outside'], { kind: 'outside', addresses: [view.outsideAddress('IPv4') ?? ''] }],
      [['--pod', 'deploy/shop/cart'], { kind: 'pod', pod: cart }],
    ];
    const differing: string[] = [];
    let count = 0;
    for (const [place, source] of sources) {
      const statuses = await ask(view, place);
      for (const [index, request] of requests.entries()) {
        const { reachable, why } = plan(view, source, request);
        if (reachable === undefined) continue;
        count++;
        const status = statuses.get(String(index)) ?? '';
        // An answer of the backend, or a redirect by the router itself.
        const isServed = /^(?:200|30[1278])$/.test(status);
        if (isServed !== reachable)
          differing.push(`${place.join(' ')} ${urlOf(request)}: ${status}, but ${why}`);
      }
    }
    return { differing, count };

    function plan(cluster: ClusterView, source: TraceSource, request: HttpRequest) {
      const { stages, router, backends } = planRequest(cluster, objects, request);
      const said = (all: typeof stages): string => all.map(({ message }) => message).join('; ');
      if (router === undefined) {
        const isUnknown = stages.some(({ verdict }) => verdict === 'unknown');
        return { reachable: isUnknown ? undefined : false, why: said(stages) };
      }
      const destination = { address: routerAddress(cluster), protocol: 'TCP' as const, port: router.port };
      const trace = withBackends(cluster, tracePath(cluster, source, destination), backends);
      return { reachable: trace.reachable, why: said([...stages, ...trace.stages]) };
    }
  }

  function routerAddress(view: ClusterView): string {
    const router = view.service(joinKey('kube-system', 'servicenet-router'));
    return router?.status.loadBalancer?.ingress?.[0]?.ip ?? '';
  }

  /** The status of each request, by its number, all sent at once; 000: no answer. */
  async function ask(view: ClusterView, place: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const address = routerAddress(view);
    const resolved = names.flatMap((host) => ['80', '443'].map((port) => `${host}:${port}:${address}`));
    const output = await home.output(
      ...[place, 'curl', '-sk', '--parallel', '--parallel-immediate', '--no-progress-meter'],
      ...['-w', String.raw`%{urlnum} %{http_code}\n`, '--max-time', '5'],
      ...resolved.flatMap((each) => ['--resolve', each]),
      ...requests.flatMap((request) => ['-o', '/dev/null', urlOf(request)]),
    );
    const lines = output.matchAll(/^(\d+) (\d+)$/gm);
    return new Map([...lines].map(([, number = '', status = '']) => [number, status]));
  }
});

function urlOf({ scheme, host, path: part }: HttpRequest): string {
  return `${scheme}://${host}${part}`;
}
