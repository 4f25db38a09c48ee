import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { StatusError } from '../../../../src/objects/status.ts';
import { bodyMediaType, patchType } from '../../../../src/apiserver/http/negotiation.ts';
import { negotiate, negotiateDiscovery, negotiateError } from '../../../../src/apiserver/http/negotiation.ts';

function refusal(call: () => unknown): StatusError {
  try {
    call();
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

const protobuf = 'application/vnd.kubernetes.protobuf';
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';

describe('Accept', () => {
  test.each([
    [undefined, 'application/json', ''],
    ['', 'application/json', ''],
    ['*/*', 'application/json', ''],
    ['application/json', 'application/json', ''],
    ['application/yaml', 'application/yaml', ''],
    ['application/json;q=0.5, application/yaml', 'application/yaml', ''],
    ['text/html;q=0.9, application/json;q=0.5', 'application/json', ''],
    ['application/vnd.kubernetes.protobuf', protobuf, ''],
    ['application/vnd.kubernetes.protobuf,application/json', protobuf, ''],
    ['application/vnd.kubernetes.protobuf, */*', protobuf, ''],
    [`${protobuf};as=Table;v=v1;g=meta.k8s.io,application/json`, 'application/json', ''],
    [`${protobuf};as=PartialObjectMetadata;v=v1;g=meta.k8s.io`, protobuf, 'PartialObjectMetadata'],
    [`${table},application/json`, 'application/json', 'Table'],
    [`application/json;as=Table;v=v9;g=meta.k8s.io,application/json`, 'application/json', ''],
    ['application/yaml;as=Table;v=v1;g=meta.k8s.io', 'application/yaml', 'Table'],
    [
      'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
      'application/json',
      'PartialObjectMetadata',
    ],
    ['application/json; as=Table; v=v1; g=meta.k8s.io', 'application/json', 'Table'],
  ])('%s', (accept, mediaType, as) => {
    expect(negotiate(accept, 'object')).toEqual({ mediaType, as, metaVersion: 'v1' });
  });

  test('conversions have an older version, which is as good', () => {
    expect(negotiate('application/json;as=Table;v=v1beta1;g=meta.k8s.io', 'object')).toEqual({
      mediaType: 'application/json',
      as: 'Table',
      metaVersion: 'v1beta1',
    });
  });

  test('go-restful refuses what it cannot produce, in its words', () => {
    const types = 'application/json, application/yaml, application/vnd.kubernetes.protobuf';
    expect(refusal(() => negotiate('text/html', 'object')).toStatus()).toMatchObject({
      code: 406,
      reason: 'NotAcceptable',
      details: {},
      message: `406: Not Acceptable\n\nAvailable representations: ${types}`,
    });
    expect(refusal(() => negotiate('text/html', 'collection')).message).toBe(
      `406: Not Acceptable\n\nAvailable representations: ${types}, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch`,
    );
    // a partial wildcard is never accepted here, but custom resources have no such gate
    expect(refusal(() => negotiate('application/*', 'object')).message).toContain('406: Not Acceptable');
    expect(negotiate('application/*', 'custom').mediaType).toBe('application/json');
  });

  test('an unknown conversion is refused behind the gate', () => {
    for (const accept of [
      'application/json;as=Nope;v=v1;g=meta.k8s.io',
      `${protobuf};as=Table;v=v1;g=meta.k8s.io`,
    ]) {
      const error = refusal(() => negotiate(accept, 'collection'));
      expect(error.details).toBeUndefined();
      expect(error.message).toBe(
        'only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf',
      );
    }
  });

  test('a watch can be a table, but not YAML', () => {
    expect(negotiate(table, 'watch').as).toBe('Table');
    expect(negotiate('application/json;stream=watch', 'watch').mediaType).toBe('application/json');
    expect(refusal(() => negotiate('application/yaml', 'watch')).code).toBe(406);
    expect(refusal(() => negotiate('application/yaml, application/json', 'watch')).message).toContain(
      'stream=watch',
    );
    expect(negotiate('application/json, application/yaml', 'watch').mediaType).toBe('application/json');
    expect(negotiate(`${protobuf};stream=watch`, 'watch').mediaType).toBe(protobuf);
    expect(refusal(() => negotiate('application/yaml', 'custom-watch')).message).toContain('stream=watch');
    expect(refusal(() => negotiate('text/html', 'custom-watch')).message).not.toContain('stream=watch');
    // What is asked for as a stream may be answered as none.
    expect(negotiate('application/json;stream=watch', 'object').mediaType).toBe('application/json');
  });

  test('an error is no table: where only such are accepted it is JSON', () => {
    expect(negotiateError(`${protobuf};as=Table;g=meta.k8s.io;v=v1`)).toBeUndefined();
    expect(negotiateError(`${protobuf};as=Table;g=meta.k8s.io;v=v1, ${protobuf}`)).toBe(protobuf);
  });

  test('custom resources have no protobuf, their metadata has', () => {
    for (const endpoint of ['custom', 'custom-watch'] as const) {
      expect(refusal(() => negotiate(protobuf, endpoint)).message).toContain(
        'only the following media types',
      );
      expect(negotiate(`${protobuf}, application/json`, endpoint).mediaType).toBe('application/json');
    }
    const metadata = `${protobuf};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`;
    expect(negotiate(metadata, 'custom-watch').mediaType).toBe(protobuf);
  });

  test('discovery can be aggregated', () => {
    const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
    expect(negotiateDiscovery(undefined, true).isAggregated).toBe(false);
    expect(negotiateDiscovery(`${aggregated},application/json`, true).isAggregated).toBe(true);
    // What is not served falls to the plain documents.
    for (const version of ['v2beta1', 'v3']) {
      const accept = `${aggregated.replace('v=v2', `v=${version}`)},application/json`;
      expect(negotiateDiscovery(accept, true)).toEqual({
        mediaType: 'application/json',
        isAggregated: false,
      });
    }
    expect(refusal(() => negotiateDiscovery('text/html', true)).message).toContain('406: Not Acceptable');
    expect(refusal(() => negotiateDiscovery('application/*', true)).code).toBe(406);
    expect(negotiateDiscovery('application/*', false).mediaType).toBe('application/json');
    expect(refusal(() => negotiateDiscovery('text/html', false)).message).toMatch(/^only the following/);
  });

  test('errors are written in whatever the client can read', () => {
    expect(negotiateError('application/yaml')).toBe('application/yaml');
    expect(negotiateError('text/html')).toBeUndefined();
    expect(negotiateError('image/yaml')).toBeUndefined();
    expect(negotiateError(`${protobuf}, */*`)).toBe(protobuf);
    expect(negotiateError(`*/*, ${protobuf}`)).toBe('application/json');
  });

  test('no header makes it fail in another way', () => {
    fc.assert(
      fc.property(fc.string(), (accept) => {
        try {
          negotiate(accept, 'custom');
        } catch (error) {
          expect(error).toBeInstanceOf(StatusError);
        }
      }),
    );
  });
});

describe('Content-Type', () => {
  test('of a body', () => {
    expect(bodyMediaType(undefined)).toBe('application/json');
    expect(bodyMediaType('Application/JSON; charset=utf-8')).toBe('application/json');
    expect(bodyMediaType('application/yaml')).toBe('application/yaml');
    expect(refusal(() => bodyMediaType('text/plain')).toStatus()).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message:
        'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf',
      reason: 'UnsupportedMediaType',
      code: 415,
    });
  });

  test('of a patch', () => {
    expect(patchType('application/json-patch+json', false)).toBe('json');
    expect(patchType('application/strategic-merge-patch+json; charset=utf-8', false)).toBe('strategic');
    expect(patchType('application/apply-patch+yaml', true)).toBe('apply');
    expect(refusal(() => patchType('application/json', false)).toStatus()).toMatchObject({
      code: 415,
      message: '415: Unsupported Media Type',
      details: {},
    });
    expect(refusal(() => patchType('application/strategic-merge-patch+json', true)).message).toBe(
      'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
    );
  });
});
