import { describe, expect, it } from 'vitest';
import { create, definitionOf } from '../../decide.ts';

const validating = definitionOf('ValidatingWebhookConfiguration');
const service = { namespace: 'ns', name: 's' };
const webhook = {
  name: 'a.example.com',
  clientConfig: { service },
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
  rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }],
};

describe('a webhook', () => {
  it('fails closed, within ten seconds, on port 443, unless it says otherwise', () => {
    const { object, errors } = create(definitionOf('MutatingWebhookConfiguration'), { webhooks: [webhook] });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({
      metadata: { generation: 1 },
      webhooks: [
        {
          failurePolicy: 'Fail',
          matchPolicy: 'Equivalent',
          namespaceSelector: {},
          objectSelector: {},
          timeoutSeconds: 10,
          reinvocationPolicy: 'Never',
          clientConfig: { service: { ...service, port: 443 } },
          rules: [{ scope: '*' }],
        },
      ],
    });
  });

  it.each([
    [
      { name: 'a.b' },
      [
        'webhooks[0].name: Invalid value: "a.b": should be a domain with at least three segments separated by dots',
      ],
    ],
    [
      { timeoutSeconds: 31 },
      ['webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds'],
    ],
    [
      { clientConfig: {} },
      ['webhooks[0].clientConfig: Required value: exactly one of url or service is required'],
    ],
    [
      { clientConfig: { url: 'http://example.com' } },
      [
        `webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]`,
      ],
    ],
    [
      { sideEffects: 'Some' },
      ['webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'],
    ],
    [
      { admissionReviewVersions: [] },
      ['webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1'],
    ],
    [
      { rules: [{ ...webhook.rules[0], operations: ['*', 'CREATE'] }] },
      [
        `webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations`,
      ],
    ],
  ])('with %j is refused', (change, errors) => {
    expect(create(validating, { webhooks: [{ ...webhook, ...change }] }).errors).toEqual(errors);
  });

  it('has a name of its own', () => {
    expect(create(validating, { webhooks: [webhook, webhook] }).errors).toEqual([
      'webhooks[1].name: Duplicate value: "a.example.com"',
    ]);
  });
});
