import type { CustomResourceDefinition } from '../../../../src/objects/types/apiextensions.generated.ts';
import { describe, expect, test } from 'vitest';
import { WebhookConverter } from '../../../../src/apiserver/custom-resources/webhook-converter.ts';
import type { KubeObject } from '../../../../src/objects/meta.ts';
import { listAt, recordAt, textAt } from '../../../../src/objects/json.ts';
import { StatusError } from '../../../../src/objects/status.ts';

const group = 'example.com';
const names = { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' };
const version = { served: true, storage: false };

/** A converter whose webhook only changes versions, and how many objects each of its questions had. */
function converter(): { converter: WebhookConverter; questions: number[] } {
  const questions: number[] = [];
  const definition: CustomResourceDefinition = {
    metadata: { name: 'widgets.example.com' },
    spec: {
      ...{ group, scope: 'Namespaced', names },
      versions: [
        { name: 'v1', ...version },
        { name: 'v2', ...version },
      ],
      conversion: { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'] } },
    },
    status: { conditions: null, acceptedNames: names, storedVersions: ['v1'] },
  };
  const client = {
    call: async (body: string) => {
      const question: unknown = JSON.parse(body);
      const apiVersion = textAt(question, 'request', 'desiredAPIVersion');
      const objects = listAt(question, 'request', 'objects');
      questions.push(objects.length);
      const convertedObjects = objects.map((object) => ({ ...recordAt(object), apiVersion }));
      const response = {
        ...{ uid: textAt(question, 'request', 'uid'), convertedObjects },
        result: { status: 'Success' },
      };
      const review = { kind: 'ConversionReview', apiVersion: 'apiextensions.k8s.io/v1', response };
      return Promise.resolve({
        ...{ status: 200, contentType: 'application/json' },
        bytes: Buffer.from(JSON.stringify(review)),
      });
    },
    close: async () => Promise.resolve(),
    destroy: async () => Promise.resolve(),
  };
  return {
    converter: new WebhookConverter(definition, { connect: () => client, newUid: () => 'uid' }),
    questions,
  };
}

function widget(n: number, of = 'v1', spec = ''): KubeObject & { spec: string } {
  return { apiVersion: `${group}/${of}`, kind: 'Widget', metadata: { name: `w${n}` }, spec };
}

describe('WebhookConverter', () => {
  test('asks about what is in other versions, at most 500 objects at a time, and keeps the order', async () => {
    const { converter: one, questions } = converter();
    const objects = Array.from({ length: 1_300 }, (_, n) => widget(n, n % 10 === 0 ? 'v2' : 'v1'));
    const converted = await one.convert(objects, `${group}/v2`);
    expect(questions).toEqual([500, 500, 170]);
    expect(converted).toEqual(objects.map((object) => ({ ...object, apiVersion: `${group}/v2` })));
    expect(converted[10]).toBe(objects[10]);
  });

  test('asks about large objects one by one, and not at all about nothing', async () => {
    const { converter: one, questions } = converter();
    const large = 'x'.repeat(700_000);
    await one.convert([widget(1, 'v1', large), widget(2, 'v1', large), widget(3), widget(4)], `${group}/v2`);
    expect(questions).toEqual([1, 3]);
    await one.convert([widget(1)], `${group}/v1`);
    await one.convert([], `${group}/v2`);
    expect(questions).toHaveLength(2);
  });

  test.each([
    ['v1', 'v3', `request to convert CR to an invalid group/version: ${group}/v3`],
    ['v3', 'v1', `request to convert CR from an invalid group/version: ${group}/v3`],
  ])('does not ask for versions that do not exist: %s to %s', async (from, to, message) => {
    const { converter: one, questions } = converter();
    await expect(one.convert([widget(1, from)], `${group}/${to}`)).rejects.toThrow(
      new StatusError(500, '', message),
    );
    expect(questions).toEqual([]);
  });
});
