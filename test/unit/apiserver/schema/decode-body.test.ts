import { describe, expect, it } from 'vitest';

import { builtinSchema, registeredKind } from '../../../../src/apiserver/schema/builtin.ts';
import { decodeBody, type ExpectedKind } from '../../../../src/apiserver/schema/decode-body.ts';
import { decodeDeleteOptions } from '../../../../src/apiserver/schema/decode-body.ts';
import type { FieldValidation } from '../../../../src/apiserver/schema/schema.ts';

function expectedKind(group: string, kind: string): ExpectedKind {
  const component = registeredKind(group, 'v1', kind)?.schema ?? '';
  return { group, version: 'v1', kind, schema: builtinSchema(component) };
}
const service = expectedKind('', 'Service');
const configMap = expectedKind('', 'ConfigMap');
const slice = expectedKind('discovery.k8s.io', 'EndpointSlice');

function decode(
  text: string,
  expected = configMap,
  fieldValidation: FieldValidation = 'Warn',
  contentType = 'application/json',
) {
  return decodeBody({ bytes: Buffer.from(text), contentType, expected, fieldValidation });
}

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof Error) return error.message;
  }
  return 'no error';
}

const unrecognized = 'the object provided is unrecognized (must be of type ConfigMap): ';
const parseError = "couldn't get version/kind; json parse error: ";
const handled = 'Service in version "v1" cannot be handled as a Service: ';

describe('decodeBody refuses', () => {
  it.each([
    [
      'hello',
      `${unrecognized}${parseError}invalid character 'h' looking for beginning of value (68656c6c6f)`,
    ],
    ['', `${unrecognized}${parseError}unexpected end of JSON input (<empty>)`],
    [
      '7',
      `${unrecognized}${parseError}json: cannot unmarshal number into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" } (37)`,
    ],
    [
      '{"kind":7}',
      `${unrecognized}${parseError}json: cannot unmarshal number into Go struct field .kind of type string ({"kind":7})`,
    ],
    [
      '{"apiVersion":"a/b/c","kind":"ConfigMap"}',
      `${unrecognized}unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","kind":" ...)`,
    ],
    [
      '{"kind":"Nope"}',
      'Nope in version "v1" cannot be handled as a ConfigMap: no kind "Nope" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
    ],
    [
      '{"kind":"ConfigMapList","items":[]}',
      'ConfigMapList in version "v1" cannot be handled as a ConfigMap: converting (v1.ConfigMapList) to (core.ConfigMap): unknown conversion',
    ],
    [
      '{"kind":"List","items":[]}',
      'List in version "v1" cannot be handled as a ConfigMap: converting (v1.List) to (core.ConfigMap): unknown conversion',
    ],
    [
      '{"data":{"k":1}}',
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string',
    ],
    [
      '{"metadata":{"creationTimestamp":"yesterday"}}',
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
    ],
    [
      '{"binaryData":{"k":"abc"}}',
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: illegal base64 data at input byte 0',
    ],
  ])('%s', (text, message) => {
    expect(messageOf(() => decode(text))).toBe(message);
  });

  it.each([
    [
      '{"spec":{"ports":[{"port":"80"}]}}',
      'json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32',
    ],
    [
      '{"spec":{"ports":80}}',
      'json: cannot unmarshal number into Go struct field ServiceSpec.spec.ports of type []v1.ServicePort',
    ],
    [
      '{"spec":{"ports":[1]}}',
      'json: cannot unmarshal number into Go struct field ServiceSpec.spec.ports of type v1.ServicePort',
    ],
    [
      '{"spec":{"ports":[{"port":80.0}]}}',
      'json: cannot unmarshal number 80.0 into Go struct field ServicePort.spec.ports.port of type int32',
    ],
    [
      '{"spec":{"ipFamilies":["IPv4",4]}}',
      'json: cannot unmarshal number into Go struct field ServiceSpec.spec.ipFamilies of type v1.IPFamily',
    ],
    [
      '{"spec":{"type":true}}',
      'json: cannot unmarshal bool into Go struct field ServiceSpec.spec.type of type v1.ServiceType',
    ],
    [
      '{"spec":{"ports":[{"targetPort":1.5}]}}',
      'json: cannot unmarshal number 1.5 into Go struct field ServicePort.spec.ports.targetPort of type int32',
    ],
    [
      '{"metadata":"a"}',
      'json: cannot unmarshal string into Go struct field Service.metadata of type v1.ObjectMeta',
    ],
    [
      '{"apiVersion":"v1","metadata":{"uid":1},"spec":1}',
      'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.uid of type types.UID',
    ],
  ])('a Service %s', (text, reason) => {
    expect(messageOf(() => decode(text, service))).toBe(handled + reason);
  });

  it('another version of the same kind, after decoding it', () => {
    const text = '{"apiVersion":"discovery.k8s.io/v1beta1","kind":"EndpointSlice"}';
    expect(messageOf(() => decode(text, slice))).toBe(
      'the API version in the data (discovery.k8s.io/v1beta1) does not match the expected API version (discovery.k8s.io/v1)',
    );
  });

  it('unknown and repeated fields when strict, in document order', () => {
    const text = '{"spec":{"ports":[{"nope":1}],"selector":{"a":"1"},"bogus":1,"selector":{"b":"2"}}}';
    expect(messageOf(() => decode(text, service, 'Strict'))).toBe(
      `${handled}strict decoding error: unknown field "spec.ports[0].nope", unknown field "spec.bogus", duplicate field "spec.selector"`,
    );
    const { object, warnings } = decode(text, service);
    expect(warnings).toEqual([
      'unknown field "spec.ports[0].nope"',
      'unknown field "spec.bogus"',
      'duplicate field "spec.selector"',
    ]);
    expect(object).toMatchObject({ spec: { selector: { a: '1', b: '2' } } });
    expect(decode(text, service, 'Ignore').warnings).toEqual([]);
  });
});

describe('decodeBody normalises', () => {
  it('zero values as Go would encode them', () => {
    const { object } = decode(
      '{"metadata":{"name":"a","labels":null,"generation":0},"spec":{"clusterIP":"","publishNotReadyAddresses":false,"allocateLoadBalancerNodePorts":false,"ipFamilyPolicy":"","ports":[{"name":null}],"selector":{}},"status":null}',
      service,
    );
    expect(object).toEqual({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'a' },
      spec: { allocateLoadBalancerNodePorts: false, ipFamilyPolicy: '', ports: [{ port: 0 }] },
      status: { loadBalancer: {} },
    });
    expect(decode('null').object).toEqual({ apiVersion: 'v1', kind: 'ConfigMap', metadata: {} });
    expect(decode('{"addressType":"IPv4","endpoints":[]}', slice).object).toEqual({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {},
      addressType: 'IPv4',
      endpoints: null,
      ports: null,
    });
  });

  it('times, quantities and base64', () => {
    const node = expectedKind('', 'Node');
    const { object } = decode(
      '{"metadata":{"creationTimestamp":"2024-02-29T10:00:00.5+02:00"},"status":{"capacity":{"cpu":"1000m","memory":0.5}}}',
      node,
    );
    expect(object).toMatchObject({
      metadata: { creationTimestamp: '2024-02-29T08:00:00Z' },
      status: { capacity: { cpu: '1', memory: '500m' } },
    });
    expect(decode('{"binaryData":{"k":"aG\\nk="}}').object).toMatchObject({ binaryData: { k: 'aGk=' } });
  });

  it('keys named like members of Object.prototype', () => {
    const { object } = decode('{"data":{"__proto__":"x","constructor":"y"}}');
    expect(JSON.stringify(object)).toContain('"data":{"__proto__":"x","constructor":"y"}');
  });

  it('keeps an empty managedFields, which gives up tracking', () => {
    expect(decode('{"metadata":{"managedFields":[]}}').object.metadata.managedFields).toEqual([]);
  });
});

describe('YAML bodies', () => {
  const yaml = 'application/yaml';
  it('are read like JSON', () => {
    const { object } = decode(
      'kind: Service\nspec:\n  ports:\n  - {port: 80.0, targetPort: web}\n',
      service,
      'Warn',
      yaml,
    );
    expect(object).toMatchObject({ spec: { ports: [{ port: 80, targetPort: 'web' }] } });
  });
  it('name the line of a repeated key', () => {
    const text = 'kind: Service\nspec:\n  color: red\n  ports:\n  - port: 80\n    port: 81\n';
    expect(messageOf(() => decode(text, service, 'Strict', yaml))).toBe(
      `${handled}strict decoding error: yaml: unmarshal errors:\n  line 6: key "port" already set in map, unknown field "spec.color"`,
    );
  });
  it('fail in the words of yaml.v2', () => {
    expect(messageOf(() => decode('a: [', configMap, 'Warn', yaml))).toBe(
      `${unrecognized}yaml: line 1: did not find expected node content (613a205b)`,
    );
    expect(messageOf(() => decode('['.repeat(20_000), configMap, 'Warn', yaml))).toContain('yaml: ');
  });
});

describe('decodeDeleteOptions', () => {
  it.each([
    ['hello', `${parseError}invalid character 'h' looking for beginning of value`],
    [
      '{"gracePeriodSeconds":"x"}',
      'json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64',
    ],
    [
      '{"kind":"ConfigMap","apiVersion":"v1"}',
      'no kind "ConfigMap" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
    ],
  ])('refuses %s', (text, message) => {
    expect(messageOf(() => decodeDeleteOptions(Buffer.from(text), 'application/json'))).toBe(message);
  });
  it('reads options with and without a kind', () => {
    for (const head of ['', '"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1",']) {
      const bytes = Buffer.from(`{${head}"propagationPolicy":"Orphan","preconditions":{"uid":"u"}}`);
      expect(decodeDeleteOptions(bytes, 'application/json')).toMatchObject({
        propagationPolicy: 'Orphan',
        preconditions: { uid: 'u' },
      });
    }
  });
});
