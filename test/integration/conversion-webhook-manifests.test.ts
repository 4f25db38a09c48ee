import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { eventually } from '../support/api-operations.ts';
import { convertAt } from '../support/conversion-webhook.ts';
import { definitions } from '../support/e2e-definitions.ts';
import { Kubectl } from '../support/kubectl.ts';
import { type Answer, call } from '../support/test-server.ts';
import { WebhookServer } from '../support/webhook-server.ts';

/** A definition of the shape that MetalLB publishes for BGP peers, applied with kubectl, as its installation does it. */
let server: TestServer;
let webhooks: WebhookServer;
let kubectl: Kubectl;
beforeAll(async () => {
  server = await startApiServer();
  webhooks = await WebhookServer.start(['metallb-webhook-service.metallb-system.svc']);
  kubectl = new Kubectl(server.kubeconfig);
});
afterAll(async () => {
  kubectl.dispose();
  await server.stop();
  await webhooks.stop();
});

const text = { type: 'string' };
const number = { type: 'integer', format: 'int32', minimum: 0 };
// 1.36 takes an int32 at its word: a maximum of 32 bits without a sign needs 64.
const asn = { type: 'integer', format: 'int64', minimum: 0, maximum: 4294967295 };
const requirement = {
  type: 'object',
  required: ['key', 'operator'],
  properties: { key: text, operator: text, values: { type: 'array', items: text } },
};
const selector = (more: JsonRecord = {}): JsonRecord => ({
  type: 'object',
  properties: {
    matchExpressions: { type: 'array', items: requirement },
    matchLabels: { type: 'object', additionalProperties: text },
  },
  ...more,
});

function version(name: string, storage: boolean, spec: JsonRecord): JsonRecord {
  const properties = {
    ...{ bfdProfile: text, ebgpMultiHop: { type: 'boolean' }, holdTime: text, keepaliveTime: text },
    ...{ myASN: asn, peerASN: asn },
    ...{ password: text, peerAddress: text, routerID: text, sourceAddress: text },
    ...spec,
  };
  return {
    ...{ name, served: true, storage, subresources: { status: {} } },
    additionalPrinterColumns: [{ name: 'Address', type: 'string', jsonPath: '.spec.peerAddress' }],
    schema: {
      openAPIV3Schema: {
        type: 'object',
        properties: {
          ...{ apiVersion: text, kind: text, metadata: { type: 'object' }, status: { type: 'object' } },
          spec: { type: 'object', required: ['myASN', 'peerASN', 'peerAddress'], properties },
        },
      },
    },
  };
}

function bgpPeers(caBundle: string): JsonRecord {
  const service = { name: 'metallb-webhook-service', namespace: 'metallb-system', path: '/convert' };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'bgppeers.metallb.io' },
    spec: {
      group: 'metallb.io',
      names: { kind: 'BGPPeer', listKind: 'BGPPeerList', plural: 'bgppeers', singular: 'bgppeer' },
      scope: 'Namespaced',
      conversion: {
        strategy: 'Webhook',
        webhook: {
          // Only the port is another one: the server of the test has no privileged one.
          clientConfig: { caBundle, service: { ...service, port: webhooks.port } },
          conversionReviewVersions: ['v1alpha1', 'v1beta1', 'v1beta2'],
        },
      },
      versions: [
        version('v1beta1', false, {
          peerPort: { ...number, maximum: 16384 },
          nodeSelectors: { type: 'array', items: selector() },
        }),
        version('v1beta2', true, {
          peerPort: { ...number, maximum: 16384, default: 179 },
          nodeSelectors: { type: 'array', items: selector({ 'x-kubernetes-map-type': 'atomic' }) },
          ...{ vrf: text, passwordSecret: { type: 'object', properties: { name: text, namespace: text } } },
        }),
      ],
    },
  };
}

const established = ({ body }: Answer): string => {
  const condition = listAt(body, 'status', 'conditions').find((one) => textAt(one, 'type') === 'Established');
  return `${textAt(condition, 'status')} ${textAt(condition, 'reason')}`;
};

test('is applied before its webhook has a certificate, served when it has one, and converts its objects', async () => {
  convertAt(webhooks, '/convert', (object, apiVersion) => {
    const { vrf: _new, ...spec } = recordAt(object, 'spec');
    return { ...object, apiVersion, spec };
  });
  const apply = async (...objects: readonly JsonRecord[]): Promise<string> =>
    kubectl.ok(['apply', '-f', '-'], objects.map((object) => stringify(object)).join('---\n'));
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'metallb-system' } };
  const service = {
    ...{ apiVersion: 'v1', kind: 'Service' },
    metadata: { name: 'metallb-webhook-service', namespace: 'metallb-system' },
    spec: { type: 'ExternalName', externalName: 'localhost' },
  };
  await apply(namespace, service, bgpPeers('Cg=='));
  const path = `${definitions}/bgppeers.metallb.io`;
  const get = async () => call(server.client, 'GET', path);
  await eventually(get, (answer) => established(answer) === 'False InvalidCABundle');
  // What its controller does at its start.
  await apply(bgpPeers(webhooks.caBundle));
  await eventually(get, (answer) => established(answer) === 'True InitialNamesAccepted');
  const lost = await kubectl.fails(['apply', '-f', '-'], stringify(bgpPeers('Cg==')));
  expect(lost).toContain('unable to load root certificates: unable to parse bytes as PEM block');

  const peer = {
    apiVersion: 'metallb.io/v1beta1',
    kind: 'BGPPeer',
    metadata: { name: 'router', namespace: 'metallb-system' },
    spec: {
      myASN: 64500,
      peerASN: 64501,
      peerAddress: '192.0.2.1',
      nodeSelectors: [{ matchLabels: { a: 'b' } }],
    },
  };
  expect(await apply(peer)).toBe('bgppeer.metallb.io/router created\n');
  expect(await apply(peer)).toBe('bgppeer.metallb.io/router unchanged\n');
  const shown = await kubectl.ok([
    'get',
    'bgppeers.v1beta2.metallb.io',
    '-n',
    'metallb-system',
    '-o',
    'json',
  ]);
  const parsed: unknown = JSON.parse(shown);
  const [item] = listAt(isRecord(parsed) ? parsed : {}, 'items');
  expect(recordAt(item)).toMatchObject({
    apiVersion: 'metallb.io/v1beta2',
    spec: { ...peer.spec, peerPort: 179 },
  });
  const table = await kubectl.ok(['get', 'bgppeers.v1beta1.metallb.io', '-n', 'metallb-system']);
  expect(table.split('\n')[1]).toMatch(/^router +192\.0\.2\.1/);
  expect(webhooks.asked.map(({ review }) => review['apiVersion'])).toEqual(
    webhooks.asked.map(() => 'apiextensions.k8s.io/v1beta1'),
  );
  await kubectl.ok(['delete', 'crd', 'bgppeers.metallb.io', '--timeout=60s']);
});
