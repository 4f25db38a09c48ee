import { expect } from 'vitest';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { definitions } from './e2e-definitions.ts';
import { eventually } from './api-operations.ts';
import { type Answer, call } from './test-server.ts';
import type { Scripted, WebhookServer } from './webhook-server.ts';

/** Where `hostPort` of v1 is `host` and `port` of v2, as in Kubernetes' e2e tests of conversion webhooks. */
export function convertHostPort(object: JsonRecord, apiVersion: string): JsonRecord {
  const { hostPort, host, port, ...rest } = object;
  if (apiVersion.endsWith('/v2')) {
    const [first, second] = typeof hostPort === 'string' ? hostPort.split(':') : [];
    return { ...rest, apiVersion, ...(first !== undefined && { host: first, port: second }) };
  }
  return { ...rest, apiVersion, ...(typeof host === 'string' && { hostPort: `${host}:${String(port)}` }) };
}

/** Makes a path of the server of webhooks convert objects, each for itself. */
export function convertAt(
  webhooks: WebhookServer,
  path: string,
  convert: (object: JsonRecord, apiVersion: string) => unknown = convertHostPort,
): void {
  answerAt(webhooks, path, (request) => ({
    convertedObjects: listAt(request, 'objects').map((object) =>
      isRecord(object) ? convert(object, textAt(request, 'desiredAPIVersion')) : object,
    ),
    result: { status: 'Success' },
  }));
}

/** Makes a path answer with responses of ConversionReviews, in the version of the question. */
export function answerAt(
  webhooks: WebhookServer,
  path: string,
  respond: (request: JsonRecord) => JsonRecord,
  after?: () => Promise<unknown>,
): void {
  webhooks.at(path, (request): Scripted => {
    const apiVersion = textAt(webhooks.asked.at(-1)?.review, 'apiVersion');
    const response = { uid: textAt(request, 'uid'), ...respond(request) };
    const review = { kind: 'ConversionReview', apiVersion, response };
    return after === undefined ? { review } : { review, after: after() };
  });
}

/** The objects of all questions at a path, as `version/name`, question by question. */
export function questionsAt(webhooks: WebhookServer, path: string): string[][] {
  return webhooks.asked
    .filter((asked) => asked.path === path)
    .map(({ review }) => {
      const request = recordAt(review, 'request');
      const to = textAt(request, 'desiredAPIVersion').split('/')[1] ?? '';
      return listAt(request, 'objects').map((object) => {
        const from = textAt(object, 'apiVersion').split('/')[1] ?? '';
        return `${textAt(object, 'metadata', 'name')} ${from}→${to}`;
      });
    });
}

const text = { type: 'string' };
const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/** A definition with v1 (`hostPort`) and v2 (`host` and `port`), which a webhook converts. */
export interface ConvertedDefinition {
  /** Of the kind, lower case. */
  readonly name: string;
  readonly path?: string;
  readonly storage?: 'v1' | 'v2';
  readonly reviewVersions?: readonly string[];
  readonly clientConfig?: JsonRecord;
  /** What v1 and v2 have besides. */
  readonly v1?: JsonRecord;
  readonly v2?: JsonRecord;
  readonly spec?: JsonRecord;
}

export const group = 'stable.example.com';

/** The definition, as it is posted. */
export function convertedDefinition(webhooks: WebhookServer, wanted: ConvertedDefinition): JsonRecord {
  const { name, path = '/convert', storage = 'v1', reviewVersions = ['v1', 'v1beta1'] } = wanted;
  const plural = `${name}s`;
  const clientConfig = wanted.clientConfig ?? { url: webhooks.url(path) };
  const version = (member: 'v1' | 'v2', properties: JsonRecord, { ...more }: JsonRecord = {}) => {
    const { properties: own, ...rest } = more;
    const all = { ...properties, spec: anything, status: anything, ...(isRecord(own) && own) };
    return {
      name: member,
      served: true,
      storage: storage === member,
      schema: { openAPIV3Schema: { type: 'object', properties: all } },
      subresources: { status: {} },
      ...rest,
    };
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural, singular: name, kind: name, listKind: `${name}List` },
      versions: [
        version('v1', { hostPort: text }, wanted.v1),
        version('v2', { host: text, port: text }, wanted.v2),
      ],
      conversion: {
        strategy: 'Webhook',
        webhook: {
          clientConfig: { caBundle: webhooks.caBundle, ...clientConfig },
          conversionReviewVersions: reviewVersions,
        },
      },
      ...wanted.spec,
    },
  };
}

/** Paths of the objects of a definition, by version. */
export interface ConvertedPaths {
  readonly v1: string;
  readonly v2: string;
  /** Of the definition. */
  readonly definition: string;
}

/** Makes the definition, and waits until its objects are served. */
export async function defineConverted(
  server: TestServer,
  webhooks: WebhookServer,
  wanted: ConvertedDefinition,
): Promise<ConvertedPaths> {
  const made = await call(server.client, 'POST', definitions, {
    body: convertedDefinition(webhooks, wanted),
  });
  expect([made.status, made.body['message']]).toEqual([201, undefined]);
  const path = (version: string) => `/apis/${group}/${version}/namespaces/default/${wanted.name}s`;
  await eventually(
    async () => call(server.client, 'GET', path('v2'), { query: { limit: 1 } }),
    ({ status }) => status === 200,
  );
  return { v1: path('v1'), v2: path('v2'), definition: `${definitions}/${wanted.name}s.${group}` };
}

/** Changes the spec of the definition, and waits until that has its effect. */
export async function changeDefinition(
  server: TestServer,
  path: string,
  patch: JsonRecord,
  contentType = 'application/merge-patch+json',
): Promise<Answer> {
  const changed = await call(server.client, 'PATCH', path, { body: patch, contentType });
  expect([changed.status, changed.body['message']]).toEqual([200, undefined]);
  return changed;
}
