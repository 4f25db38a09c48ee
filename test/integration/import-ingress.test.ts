import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { keyOf } from '../../src/objects/meta.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { commandLine, type CommandRun } from '../support/command-line.ts';
import { applyStrictly, kustomize, parseManifests } from '../support/manifests.ts';

/** Ingresses of two namespaces with all that is translated. */
const ingresses = `
{ apiVersion: v1, kind: Namespace, metadata: { name: shop } }
---
{ apiVersion: v1, kind: Namespace, metadata: { name: blog } }
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: { name: nginx }
spec: { controller: k8s.io/ingress-nginx }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec: { selector: { app: web }, ports: [{ name: http, port: 8080 }] }
---
apiVersion: v1
kind: Service
metadata: { name: web-v2, namespace: shop }
spec: { selector: { app: web-v2 }, ports: [{ name: http, port: 8080 }] }
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  namespace: shop
  annotations:
    nginx.ingress.kubernetes.io/rewrite-target: /$2
    nginx.ingress.kubernetes.io/app-root: /shop
    nginx.ingress.kubernetes.io/enable-cors: "true"
    nginx.ingress.kubernetes.io/cors-allow-origin: https://*.example.com, https://example.org:8443
    nginx.ingress.kubernetes.io/cors-expose-headers: "*"
    nginx.ingress.kubernetes.io/proxy-read-timeout: "360000"
    nginx.ingress.kubernetes.io/server-alias: www.shop.example.com
    nginx.ingress.kubernetes.io/upstream-vhost: inside.example.com
    nginx.ingress.kubernetes.io/x-forwarded-prefix: /shop
    nginx.ingress.kubernetes.io/affinity: cookie
spec:
  ingressClassName: nginx
  tls: [{ hosts: [shop.example.com], secretName: shop-tls }]
  rules:
    - host: shop.example.com
      http:
        paths:
          - { path: /shop(/|$)(.*), pathType: ImplementationSpecific, backend: { service: { name: web, port: { name: http } } } }
          - { path: "/[a-z]+/v[0-9]", pathType: ImplementationSpecific, backend: { service: { name: web, port: { number: 8080 } } } }
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web-canary
  namespace: shop
  annotations:
    nginx.ingress.kubernetes.io/canary: "true"
    nginx.ingress.kubernetes.io/canary-by-header: X-Canary
    nginx.ingress.kubernetes.io/canary-by-header-pattern: ^yes
    nginx.ingress.kubernetes.io/canary-weight: "5"
spec:
  ingressClassName: nginx
  rules:
    - host: shop.example.com
      http:
        paths:
          - { path: /shop(/|$)(.*), pathType: ImplementationSpecific, backend: { service: { name: web-v2, port: { name: http } } } }
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: moved
  namespace: blog
  annotations: { nginx.ingress.kubernetes.io/permanent-redirect: "https://new.example.com:8443/blog" }
spec:
  ingressClassName: nginx
  tls: [{ hosts: ["*.blog.example.com"], secretName: blog-tls }]
  rules:
    - host: "*.blog.example.com"
      http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: old, port: { number: 80 } } } }] }
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: through
  namespace: blog
  annotations: { nginx.ingress.kubernetes.io/ssl-passthrough: "true" }
spec:
  ingressClassName: nginx
  defaultBackend: { service: { name: other, port: { number: 80 } } }
  rules:
    - host: tls.example.com
      http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: tls, port: { number: 443 } } } }] }
`;

const path = (text: string): object => ({
  ...{ path: text, pathType: 'Prefix' },
  backend: { service: { name: 'web', port: { name: 'http' } } },
});
const hosts = Array.from({ length: 66 }, (_, i) => `h${i}.example.com`);

/** More hosts with certificates than a Gateway has listeners, one of them with more paths than a Route has rules. */
const many = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: {
    name: 'many',
    namespace: 'shop',
    annotations: { 'nginx.ingress.kubernetes.io/auth-url': 'https://auth.example.com' },
  },
  spec: {
    ingressClassName: 'many',
    tls: hosts.map((host, i) => ({ hosts: [host], secretName: `s${i}` })),
    rules: hosts.map((host, i) => ({
      host,
      http: { paths: i === 0 ? Array.from({ length: 20 }, (_, j) => path(`/p${j}`)) : [path('/')] },
    })),
  },
};

describe('servicenet import ingress', () => {
  let server: TestServer;
  let folder = '';

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'servicenet-import-'));
    server = await startApiServer();
    await writeFile(join(folder, 'kubeconfig'), server.kubeconfig);
  });

  afterAll(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const importIngress = (...args: string[]): Promise<CommandRun> =>
    commandLine('import', 'ingress', '--kubeconfig', join(folder, 'kubeconfig'), ...args);

  test('says that there is none', async () => {
    expect(await importIngress()).toEqual({
      ...{ code: 1, output: '', errors: 'servicenet: the cluster has no Ingresses\n' },
    });
  });

  test('prints what the API takes as it is, and says what is left out', async () => {
    await applyStrictly(server.client, parseManifests(ingresses));
    await applyStrictly(server.client, [many]);
    const { code, output, errors } = await importIngress(
      '--gateway-class',
      'edge',
      '--gateway-namespace',
      'default',
    );
    expect(code).toBe(0);
    const notes = errors.trimEnd().split('\n');
    expect(notes).toContain(
      'shop/web: affinity not imported: each request goes to any Pod, whoever sends it',
    );
    expect(output.startsWith(notes.map((note) => `# ${note}\n`).join(''))).toBe(true);
    expect((await importIngress('--gateway-class', 'edge', '--gateway-namespace', 'default')).output).toBe(
      output,
    );

    const objects = parseManifests(output);
    const keysOf = (kind: string): string[] => objects.filter((one) => one.kind === kind).map(keyOf);
    expect(keysOf('Gateway')).toEqual(['default/many', 'default/nginx']);
    expect(keysOf('ListenerSet')).toEqual(['default/many-2']);
    expect(keysOf('TLSRoute')).toEqual(['blog/through-tls.example.com']);
    expect(keysOf('HTTPRoute').filter((key) => !key.startsWith('shop/many'))).toEqual([
      'blog/moved-wildcard.blog.example.com',
      'blog/through',
      'blog/through-tls.example.com-to-https',
      'shop/web-shop.example.com',
      'shop/web-shop.example.com-to-https',
    ]);
    await applyStrictly(server.client, kustomize('deploy/crds/gateway-api'));
    await applyStrictly(server.client, objects);
  });
});
