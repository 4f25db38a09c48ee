import { describe, expect, it } from 'vitest';
import { contextOf, create, definitionOf, read } from '../../decide.ts';

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
  it.each(['', '/', '/a', '/a/', '/a.b/c-d'])('may call the path %j of its Service', (path) => {
    const changed = { ...webhook, clientConfig: { service: { ...service, path } } };
    const { object, errors } = create(validating, { webhooks: [changed] });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({ webhooks: [{ clientConfig: { service: { path } } }] });
  });

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
      { clientConfig: { url: '' } },
      [
        `webhooks[0].clientConfig.url: Invalid value: "": 'https' is the only allowed URL scheme; desired format: https://host[/path]`,
        'webhooks[0].clientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]',
      ],
    ],
    [
      { clientConfig: { service: { ...service, path: '//' } } },
      ['webhooks[0].clientConfig.service.path: Invalid value: "//": segment[0] may not be empty'],
    ],
    [
      { clientConfig: { service: { ...service, path: 'a//b' } } },
      [
        `webhooks[0].clientConfig.service.path: Invalid value: "a//b": must start with a '/'`,
        'webhooks[0].clientConfig.service.path: Invalid value: "a//b": segment[0] may not be empty',
        'webhooks[0].clientConfig.service.path: Invalid value: "a//b": segment[1] may not be empty',
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

describe('a name that is for configurations in files', () => {
  const name = 'a.static.k8s.io';
  const fault = `names ending with ".static.k8s.io" are reserved for static manifest-based configurations and cannot be managed via the API`;
  const policy = { policyName: 'p', validationActions: ['Deny'] };

  it.each([
    ['ValidatingWebhookConfiguration', {}],
    ['MutatingWebhookConfiguration', {}],
    ['ValidatingAdmissionPolicyBinding', { spec: policy }],
    ['MutatingAdmissionPolicyBinding', { spec: { policyName: 'p' } }],
    ['ValidatingAdmissionPolicy', { spec: { validations: [{ expression: 'true' }] } }],
  ])('is refused to a new %s, and an update of one is warned of', (kind, body) => {
    const definition = definitionOf(kind);
    expect(create(definition, { metadata: { name }, ...body }).errors.at(-1)).toBe(
      `metadata.name: Invalid value: "${name}": ${fault}`,
    );
    const stored = read(definition, { metadata: { name }, ...body });
    expect(definition.strategy.warningsOnUpdate?.(stored, stored)).toContain(`metadata.name: ${fault}`);
    expect(definition.strategy.validateUpdate(stored, stored, contextOf())).not.toContainEqual(
      expect.objectContaining({
        field: 'metadata.name',
        body: expect.stringContaining('reserved') as string,
      }),
    );
  });
});

it.each<[string[], string[], string[]]>([
  [
    ['authentication.k8s.io', 'authorization.k8s.io'],
    ['tokenreviews', 'subjectaccessreviews', 'tokenreviews', 'pods'],
    ['tokenreviews.authentication.k8s.io', 'subjectaccessreviews.authorization.k8s.io'],
  ],
  [['*'], ['tokenreviews'], []],
  [['authentication.k8s.io'], ['*'], []],
])('a rule of %j for %j is warned of what webhooks are not asked about', (apiGroups, resources, names) => {
  const rules = [{ operations: ['CREATE'], apiGroups, apiVersions: ['v1'], resources }];
  const object = read(validating, { metadata: { name: 'a' }, webhooks: [{ ...webhook, rules }] });
  const expected = names.map(
    (name) =>
      `webhooks[0].rules[0]: ${name} is excluded from admission webhooks; this rule will have no effect`,
  );
  expect(validating.strategy.warningsOnCreate?.(object)).toEqual(expected);
  expect(validating.strategy.warningsOnUpdate?.(object, object)).toEqual(expected);
});
